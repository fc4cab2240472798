"""Numbers of images against the card."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gcdbench.datasets.integrity.report import Finding
from gcdbench.datasets.source import DatasetSource


def count_findings(source: DatasetSource) -> Iterator[Finding]:
    """Images per class, and in each part, against the card."""
    card = source.card
    is_test = np.zeros(len(source), dtype=np.bool_) if source.partition is None else source.partition == "test"
    if card.counts is None and card.test_counts is None and card.count_range is None and not card.samples:
        yield Finding(level="note", kind="counts", message="the card states no counts, so none were checked")
        return
    for part, expected, where in (("training", card.counts, ~is_test), ("test", card.test_counts, is_test)):
        if expected is None:
            continue
        if part == "test" and not is_test.any():
            yield _no_test_part(sum(expected))
            continue
        labels = source.labels[where & (source.labels >= 0)]
        found = np.bincount(labels, minlength=len(card.classes)).tolist()
        for name, have, want in zip(card.classes, found, expected, strict=True):
            if have != want:
                message = f"class {name} has {have:,} {part} images, the card says {want:,}"
                yield Finding(level="error", kind="counts", message=message)
    if card.count_range is not None:
        fewest, most = card.count_range
        found = np.bincount(source.labels[~is_test & (source.labels >= 0)], minlength=len(card.classes)).tolist()
        for name, have in zip(card.classes, found, strict=True):
            if not fewest <= have <= most:
                message = f"class {name} has {have:,} training images, the card says {fewest:,} to {most:,}"
                yield Finding(level="error", kind="counts", message=message)
    if card.counts is None:
        for part, where in (("train", ~is_test), ("test", is_test)):
            found_here = int(where.sum())
            if part not in card.samples or found_here == card.samples[part]:
                continue
            if part == "test" and not found_here:
                yield _no_test_part(card.samples[part])
                continue
            message = f"the {part} part has {found_here:,} images, the card says {card.samples[part]:,}"
            yield Finding(level="error", kind="counts", message=message)


def _no_test_part(expected: int) -> Finding:
    """Runs are possible without it, as long as nobody takes their scores for inductive ones."""
    message = f"there is no test part ({expected:,} images); scores will be on unlabelled images only"
    return Finding(level="warning", kind="counts", message=message)
