"""CUB-200-2011: birds, with lists of images, classes and parts."""

from __future__ import annotations

from pathlib import Path

from gcdbench.core.errors import DataError
from gcdbench.datasets.card import load_card
from gcdbench.datasets.roots import find_place
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.datasets.sources.folder import missing
from gcdbench.datasets.sources.official import Listed, from_lists, numbered, require_classes
from gcdbench.datasets.sources.options import refuse_unknown_options

IMAGES, CLASSES, LABELS, PARTS = "images.txt", "classes.txt", "image_class_labels.txt", "train_test_split.txt"


def make_cub(request: DatasetRequest) -> DatasetSource:
    """The folder that the archive unpacks to; the official training part is the pool."""
    refuse_unknown_options(request)
    card = load_card(request.name)
    found = find_place(request.roots, [f"{place}/{IMAGES}" for place in card.places])
    if found is None:
        raise missing(card, request)
    root = found.parent
    tables = {name: numbered(root / name) for name in (IMAGES, CLASSES, LABELS, PARTS)}
    require_classes(root / CLASSES, list(tables[CLASSES].texts.values()), card)
    images, labels, parts = (tables[name].texts for name in (IMAGES, LABELS, PARTS))
    for name, texts in ((LABELS, labels), (PARTS, parts)):
        if texts.keys() != images.keys():
            raise DataError(
                f"{root / name} has {len(texts):,} lines for the {len(images):,} images of {IMAGES}, or other numbers.",
                hint="One of the lists is cut off: unpack the archive again.",
            )
    listed = [
        Listed(
            file=f"images/{path}",
            label=_index(root, number, labels[number], len(card.classes)),
            part=_part(root, number, parts[number]),
            place=f"{root / IMAGES}, line {tables[IMAGES].lines[number]}",
        )
        for number, path in images.items()
    ]
    return from_lists(root, card, listed, [root / name for name in tables])


def _index(root: Path, number: str, text: str, count: int) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= count:
        raise DataError(f"{root / LABELS}: image {number} has the class '{text}', expected 1 to {count}.")
    return int(text) - 1


def _part(root: Path, number: str, text: str) -> str:
    if text not in ("0", "1"):
        raise DataError(f"{root / PARTS}: image {number} has '{text}', expected 1 (training) or 0 (test).")
    return "train" if text == "1" else "test"
