"""Datasets that are folders of class folders: ``folder:<path>``, and every built-in set of that layout."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from gcdbench.data.card import DatasetCard, load_card
from gcdbench.data.roots import missing_dataset, resolve_argument
from gcdbench.data.sources.options import refuse_unknown_options
from gcdbench.data.sources.walk import FileReader, FoundFile, IgnoredFile, fingerprint, list_images
from gcdbench.data.types import DatasetRequest, DatasetSource
from gcdbench.errors import DataError

PARTS = {"train": "train", "val": "train", "valid": "train", "validation": "train", "test": "test"}
"""First-level folders that are parts of a dataset instead of classes; a validation part counts as training data."""


def make_folder(request: DatasetRequest) -> DatasetSource:
    """``folder:<path>``: any folder of class folders, or of ``train/`` and ``test/`` with class folders below."""
    refuse_unknown_options(request)
    root = resolve_argument(request.argument, request.roots, "folder")
    if not root.is_dir():
        raise DataError(f"{root} is not a folder.", hint="For a list of files use csv:<file>, for arrays npz:<file>.")
    return scan_folder(root, made_card(f"folder-{safe_name(root.name)}", str(root)))


def make_named_folder(request: DatasetRequest) -> DatasetSource:
    """A built-in dataset of class folders, found by the places that its card names."""
    refuse_unknown_options(request)
    card = load_card(request.name)
    root = find_class_folders(request.roots, card.places, card.classes)
    if root is not None:
        return scan_folder(root, card)
    for edition in card.editions:
        root = find_class_folders(request.roots, (edition.place,), card.classes)
        if root is not None:
            smaller = replace(
                card,
                title=f"{card.title} ({edition.name}: {edition.note})",
                counts=(edition.count,) * len(card.classes),
                samples={},
            )
            return scan_folder(root, smaller)
    raise missing(card, request)


def find_class_folders(roots: Iterable[Path], places: Iterable[str], classes: tuple[str, ...]) -> Path | None:
    """The first place that has at least one of the class folders: a name alone may belong to something else."""
    places = tuple(places)
    candidates = (root / place for root in roots for place in places)
    return next((path for path in candidates if any((path / name).is_dir() for name in classes)), None)


def missing(card: DatasetCard, request: DatasetRequest) -> DataError:
    """The error for a built-in dataset that is not on this machine."""
    places = (*card.places[:1], *(edition.place for edition in card.editions))
    how = f"'gcdbench data fetch {card.name}' gets it." if card.downloads else f"get it from {card.source}."
    return missing_dataset(card.name, card.title, places, request.roots, how)


def made_card(name: str, location: str) -> DatasetCard:
    """A card for data that came without one; classes are filled in once they are known."""
    return DatasetCard(
        name=name,
        title=f"data of the user's own in {location}",
        modality="unknown",
        classes=(),
        licence="unknown",
        citation="none",
        source=location,
        layout=location,
    )


def safe_name(text: str) -> str:
    """``text`` reduced to what is safe in a folder name."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-.") or "data"


def scan_folder(root: Path, card: DatasetCard, *, test_root: Path | None = None) -> DatasetSource:
    """List the images below ``root``. Classes are the card's; without any, they are the folders in sorted order.

    ``test_root`` is a second folder of the same classes that holds the test part.
    """
    listing = list_images(root)
    parts = {file.key.split("/")[0] for file in listing.files}
    has_parts = test_root is None and bool(parts) and parts <= set(PARTS) and "train" in parts
    folder_of = _second if has_parts else _first
    files, ignored = list(listing.files), list(listing.ignored)
    names = [file.key for file in files]
    partition = [PARTS[_first(file)] if has_parts else "train" for file in files]
    if test_root is not None:
        more = list_images(test_root)
        prefix = f"{test_root.name}/"
        files += more.files
        ignored += [IgnoredFile(key=prefix + item.key, reason=item.reason) for item in more.ignored]
        names += [str(test_root / file.key) for file in more.files]
        partition += ["test"] * len(more.files)
    classes = card.classes or tuple(sorted({folder_of(file) for file in files} - {""}))
    if len(classes) < 1 or not files:
        raise DataError(
            f"There are no class folders with images in {root}.",
            hint="Expected <folder>/<class>/<image>; hidden files and unknown extensions do not count.",
        )
    index = {name: position for position, name in enumerate(classes)}
    kept = [position for position, file in enumerate(files) if folder_of(file) in index]
    strays = [_stray(file, folder_of(file)) for file in files if folder_of(file) not in index]
    if not kept:
        raise DataError(
            f"{root} has none of the class folders of '{card.name}' ({', '.join(classes[:3])}, ...).",
            hint=f"Expected layout: {card.layout}",
        )
    shown = len(listing.files)
    keys = tuple(
        files[position].key if position < shown or test_root is None else f"{test_root.name}/{files[position].key}"
        for position in kept
    )
    chosen = np.array([partition[position] for position in kept])
    return DatasetSource(
        card=card if card.classes else replace(card, classes=classes),
        keys=keys,
        labels=np.array([index[folder_of(files[position])] for position in kept], dtype=np.int64),
        raw=FileReader(
            root=str(root),
            names=tuple(names[position] for position in kept),
            ignored=(*ignored, *strays),
            size=sum(files[position].size for position in kept),
        ),
        partition=chosen,
        location=str(root) if test_root is None else f"{root} and {test_root}",
        fingerprint=fingerprint(root, files, f"test in {test_root}"),
    )


def _first(file: FoundFile) -> str:
    return file.key.split("/")[0] if "/" in file.key else ""


def _second(file: FoundFile) -> str:
    parts = file.key.split("/")
    return parts[1] if len(parts) > 2 else ""


def _stray(file: FoundFile, folder: str) -> IgnoredFile:
    return IgnoredFile(key=file.key, reason="in a folder that is no class" if folder else "not in a class folder")
