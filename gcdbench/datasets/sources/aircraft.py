"""FGVC-Aircraft: photographs of aircraft, with lists of variants and parts."""

from __future__ import annotations

from pathlib import Path

from gcdbench.core.errors import DataError
from gcdbench.datasets.card import load_card
from gcdbench.datasets.roots import find_place
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.datasets.sources.folder import missing
from gcdbench.datasets.sources.official import Listed, from_lists, read_lines, require_classes
from gcdbench.datasets.sources.options import refuse_unknown_options

CLASSES = "variants.txt"
LISTS = {"images_variant_trainval.txt": "train", "images_variant_test.txt": "test"}


def make_aircraft(request: DatasetRequest) -> DatasetSource:
    """The folder that the archive unpacks to; the published parts train and val together are the pool."""
    refuse_unknown_options(request)
    card = load_card(request.name)
    found = find_place(request.roots, [f"{place}/data/{CLASSES}" for place in card.places])
    if found is None:
        raise missing(card, request)
    root = found.parent
    require_classes(found, sorted(line for _, line in read_lines(found)), card)
    index = {name: position for position, name in enumerate(card.classes)}
    listed = [line for name, part in LISTS.items() for line in _listed(root / name, part, index)]
    return from_lists(root, card, listed, [root / name for name in (CLASSES, *LISTS)])


def _listed(file: Path, part: str, index: dict[str, int]) -> list[Listed]:
    lines = []
    for position, line in read_lines(file):
        number, _, variant = line.partition(" ")
        if not number.isdecimal() or variant not in index:
            raise DataError(f"{file}, line {position}, is not '<image> <variant>': '{line}'.")
        place = f"{file}, line {position}"
        lines.append(Listed(file=f"images/{number}.jpg", label=index[variant], part=part, place=place))
    return lines
