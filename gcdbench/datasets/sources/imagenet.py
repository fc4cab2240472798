"""ImageNet-100: a hundred classes of an ImageNet folder, named by the card or by the user's own list."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from gcdbench.core.errors import DataError
from gcdbench.datasets.card import DatasetCard, load_card
from gcdbench.datasets.roots import resolve_argument
from gcdbench.datasets.source import DatasetRequest, DatasetSource, Remark
from gcdbench.datasets.sources.folder import find_class_folders, missing, scan_folder
from gcdbench.datasets.sources.official import read_lines
from gcdbench.datasets.sources.options import refuse_unknown_options
from gcdbench.datasets.sources.own import safe_name


def make_imagenet_subset(request: DatasetRequest) -> DatasetSource:
    """``train/<synset>`` and ``val/<synset>``; other classes are ignored.

    Option ``classes`` names a file with one synset per line, for one of the other selections of classes.
    """
    refuse_unknown_options(request, "classes")
    card = load_card(request.name)
    if chosen := request.options.get("classes"):
        card = _with_classes(card, resolve_argument(chosen, request.roots, "classes"))
    root = find_class_folders(request.roots, [f"{place}/train" for place in card.places], card.classes)
    if root is None:
        raise missing(card, request)
    if lacking := [name for name in card.classes if not (root / name).is_dir()]:
        raise DataError(
            f"{root} has no folder for {len(lacking)} of the {len(card.classes)} classes, first '{lacking[0]}'.",
            hint="It holds another selection of classes: name its list with --dataset-set classes=FILE.",
        )
    test_root = find_class_folders((root.parent,), ("val",), card.classes)
    source = scan_folder(root, card, test_root=test_root, only_classes=True)
    if test_root is not None:
        return source
    message = f"{root.parent / 'val'} has no class folders, so there is no test part"
    return replace(source, remarks=(*source.remarks, Remark(kind="parts", level="warning", message=message)))


def _with_classes(card: DatasetCard, file: Path) -> DatasetCard:
    """The card with the classes of a list; its name says so, since its runs are of another dataset."""
    names = [line.split()[0] for _, line in read_lines(file)]
    wrong = [name for name in names if not re.fullmatch(r"n\d{8}", name)]
    if wrong or len(set(names)) != len(names) or len(names) < 2:
        what = (
            f"'{wrong[0]}' is not a synset (n and eight digits)"
            if wrong
            else f"it has {len(set(names))} different ones"
        )
        raise DataError(f"{file} is not a list of synsets, one per line: {what}.")
    return replace(
        card,
        name=f"{card.name}-{safe_name(file.stem)}",
        classes=tuple(sorted(names)),
        counts=None,
        test_counts=None,
        count_range=None,
    )
