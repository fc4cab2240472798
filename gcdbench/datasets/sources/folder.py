"""Datasets that are folders of class folders: ``folder:<path>``, and every built-in set of that layout."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gcdbench.core.errors import DataError
from gcdbench.datasets.card import DatasetCard, load_card
from gcdbench.datasets.roots import missing_dataset, resolve_argument
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.datasets.sources.options import refuse_unknown_options
from gcdbench.datasets.sources.walk import FileReader, FoundFile, IgnoredFile, fingerprint, list_images

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
    """``text`` reduced to what is safe in a folder name: letters and digits of any script stay."""
    return re.sub(r"[^\w.-]+", "-", text).strip("-.") or "data"


def scan_folder(root: Path, card: DatasetCard, *, test_root: Path | None = None) -> DatasetSource:
    """List the images below ``root``. Classes are the card's; without any, they are the folders in sorted order.

    ``test_root`` is a second folder of the same classes that holds the test part.
    """
    listing = list_images(root)
    tops = {_level(file.key, 0) for file in listing.files} - {""}  # a picture beside the folders has no class
    has_parts = bool(tops) and tops <= set(PARTS) and "train" in tops
    samples = [
        _Sample(
            file=file,
            key=file.key,
            path=file.key,
            label=_level(file.key, 1 if has_parts else 0),
            part=PARTS.get(_level(file.key, 0), "train") if has_parts else "train",
        )
        for file in listing.files
    ]
    ignored = list(listing.ignored)
    if test_root is not None:
        more = list_images(test_root)
        samples += [
            _Sample(
                file=file,
                key=f"{test_root.name}/{file.key}",
                path=str(test_root / file.key),
                label=_level(file.key, 0),
                part="test",
            )
            for file in more.files
        ]
        ignored += [IgnoredFile(key=f"{test_root.name}/{item.key}", reason=item.reason) for item in more.ignored]
    classes = card.classes or tuple(sorted({sample.label for sample in samples} - {""}))
    index = {name: position for position, name in enumerate(classes)}
    kept = [sample for sample in samples if sample.label in index]
    if not kept:
        raise DataError(
            f"There are no class folders with images in {root}.",
            hint=f"Expected {card.layout if card.classes else '<folder>/<class>/<image>'}; hidden files and unknown "
            "extensions do not count.",
        )
    for sample in samples:
        if sample.label not in index:
            reason = "in a folder that is no class" if sample.label else "not in a class folder"
            ignored.append(IgnoredFile(key=sample.key, reason=reason))
    return DatasetSource(
        card=card if card.classes else replace(card, classes=classes),
        keys=tuple(sample.key for sample in kept),
        labels=np.array([index[sample.label] for sample in kept], dtype=np.int64),
        raw=FileReader(
            root=str(root),
            names=tuple(sample.path for sample in kept),
            ignored=tuple(ignored),
            size=sum(sample.file.size for sample in kept),
        ),
        partition=np.array([sample.part for sample in kept]),
        location=str(root) if test_root is None else f"{root} and {test_root}",
        fingerprint=fingerprint(root, [sample.file for sample in samples], f"test in {test_root}"),
    )


@dataclass(frozen=True, kw_only=True)
class _Sample:
    """An image file on its way to a dataset; ``path`` is relative to the root, or absolute."""

    file: FoundFile
    key: str
    path: str
    label: str
    part: str


def _level(key: str, depth: int) -> str:
    """Name of the folder at ``depth`` above a file, or "" where the file does not lie that deep."""
    folders = key.split("/")[:-1]
    return folders[depth] if depth < len(folders) else ""
