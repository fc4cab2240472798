"""Kvasir-SEG: polyp images with lesion masks. It has one class and only serves to score attention maps."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.errors import DataError
from gcdbench.datasets.card import load_card
from gcdbench.datasets.roots import find_place
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.datasets.sources.folder import missing
from gcdbench.datasets.sources.options import refuse_unknown_options
from gcdbench.datasets.sources.walk import FileReader, IgnoredFile, fingerprint, list_images


@dataclass(frozen=True, kw_only=True)
class MaskReader:
    """``mask`` of a dataset whose masks are image files of the same order as its images. Picklable."""

    root: str
    names: tuple[str, ...]

    def __call__(self, index: int) -> NDArray[np.bool_]:
        """(H, W) bool; published as JPEG, so values are cut at one half."""
        from gcdbench.images.decoding import open_image

        with open(os.path.join(self.root, self.names[index]), "rb") as file:
            return np.asarray(open_image(file.read()).convert("L")) > 127


def make_kvasir_seg(request: DatasetRequest) -> DatasetSource:
    """``images/`` and ``masks/`` with equal names (extensions may differ)."""
    refuse_unknown_options(request)
    card = load_card("kvasir-seg")
    root = find_place(request.roots, [f"{place}/images" for place in card.places])
    if root is None:
        raise missing(card, request)
    root = root.parent
    listing = list_images(root, wanted=lambda name: name in ("images", "masks"))
    masks = {_stem(file.key): file.key for file in listing.files if file.key.startswith("masks/")}
    images = [file for file in listing.files if file.key.startswith("images/")]
    paired = [file for file in images if _stem(file.key) in masks]
    if not paired:
        raise DataError(f"{root} has no image with a mask of the same name.", hint=f"Layout: {card.layout}")
    lonely = [IgnoredFile(key=file.key, reason="has no mask") for file in images if _stem(file.key) not in masks]
    return DatasetSource(
        card=card,
        keys=tuple(file.key for file in paired),
        labels=np.zeros(len(paired), dtype=np.int64),
        raw=FileReader(
            root=str(root),
            names=tuple(file.key for file in paired),
            ignored=(*listing.ignored, *lonely),
            size=sum(file.size for file in listing.files),
        ),
        mask=MaskReader(root=str(root), names=tuple(masks[_stem(file.key)] for file in paired)),
        location=str(root),
        fingerprint=fingerprint(root, listing.files),
    )


def _stem(key: str) -> str:
    return os.path.splitext(key.partition("/")[2])[0]
