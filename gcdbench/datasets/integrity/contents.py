"""A short name for what is in a dataset: it tells two folders of the same name apart."""

from __future__ import annotations

import hashlib

from gcdbench.datasets.source import UNKNOWN, DatasetSource
from gcdbench.images.hashing import Digests

LENGTH = 8


def contents_digest(source: DatasetSource, digests: Digests) -> str:
    """Eight hexadecimal digits that depend on the images and their classes and parts, not on file names or places.

    digests: (N, 32) content hashes in the order of the source.
    """
    parts = ["train"] * len(source) if source.partition is None else source.partition.tolist()
    classes = (*source.card.classes, "")  # the last one is that of UNKNOWN
    assert UNKNOWN == -1
    lines = sorted(
        f"{classes[label]}\t{part}\t{digest.tobytes().hex()}"
        for label, part, digest in zip(source.labels.tolist(), parts, digests, strict=True)
    )
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()[:LENGTH]
