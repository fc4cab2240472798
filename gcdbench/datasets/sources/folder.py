"""Datasets that are folders of class folders: ``folder:<path>``, and every built-in set of that layout."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gcdbench.core.errors import DataError
from gcdbench.datasets.card import DatasetCard, load_card
from gcdbench.datasets.roots import missing_dataset, resolve_argument
from gcdbench.datasets.source import UNKNOWN, DatasetRequest, DatasetSource
from gcdbench.datasets.sources.layout import Layout, Place, understand
from gcdbench.datasets.sources.options import choose_option, refuse_unknown_options
from gcdbench.datasets.sources.own import OWN_OPTIONS, finish, made_card, safe_name
from gcdbench.datasets.sources.walk import FileReader, FoundFile, IgnoredFile, Listing, fingerprint, list_images


def make_folder(request: DatasetRequest) -> DatasetSource:
    """``folder:<path>``: any folder of class folders, or of parts (``Training/``, ``test/``, ...) with classes below.

    Options: ``layout`` (classes or parts) and ``parts`` (FOLDER:train,FOLDER:test) where names alone do not tell;
    ``groups`` (parent, a pattern, dicom:FIELD) keeps patients together; ``labels=none`` takes every image below the
    folder as one of unknown class; ``on_unreadable=skip`` leaves out what cannot be decoded.
    """
    refuse_unknown_options(request, "layout", "parts", *OWN_OPTIONS)
    layout = choose_option(request, "layout", ("classes", "parts"))
    labelled = choose_option(request, "labels", ("folders", "none")) != "none"
    root = resolve_argument(request.argument, request.roots, "folder")
    if not root.is_dir():
        raise DataError(f"{root} is not a folder.", hint="For a list of files use csv:<file>, for arrays npz:<file>.")
    card = made_card(f"folder-{safe_name(root.name)}", str(root))
    listing = list_images(root)
    if not labelled:
        return finish(_unlabelled(root, card, listing), request, lambda key: Place(below=tuple(key.split("/")[:-1])))
    keys = [file.key for file in listing.files]
    understood = understand(root, keys, layout=layout, parts=request.options.get("parts"))
    return finish(read_folder(root, card, understood, listing), request, understood.place)


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


def scan_folder(
    root: Path, card: DatasetCard, *, test_root: Path | None = None, only_classes: bool = False
) -> DatasetSource:
    """List the images below ``root``, a folder of the card's classes.

    ``test_root`` is a second folder of the same classes that holds the test part. With ``only_classes`` folders of
    other names are not looked into.
    """
    wanted = set(card.classes).__contains__ if only_classes else None
    listing = list_images(root, wanted=wanted)
    test = None if test_root is None else (test_root, list_images(test_root, wanted=wanted))
    return read_folder(root, card, Layout(), listing, test=test)


def read_folder(
    root: Path, card: DatasetCard, layout: Layout, listing: Listing, *, test: tuple[Path, Listing] | None = None
) -> DatasetSource:
    """The dataset below ``root``. Without classes in the card they are the names of the folders, sorted.

    ``test`` is a second folder, which holds the test part, and what was found in it.
    """
    test_root = None if test is None else test[0]
    samples = [_Sample(file=file, key=file.key, path=file.key, place=layout.place(file.key)) for file in listing.files]
    ignored = list(listing.ignored)
    if test is not None:
        test_root, more = test
        samples += [
            _Sample(
                file=file,
                key=f"{test_root.name}/{file.key}",
                path=str(test_root / file.key),
                place=replace(layout.place(file.key), part="test"),
            )
            for file in more.files
        ]
        ignored += [IgnoredFile(key=f"{test_root.name}/{item.key}", reason=item.reason) for item in more.ignored]
    labels = _spelled_alike([sample.place.label if sample.place.part else "" for sample in samples])
    classes = card.classes or tuple(sorted(set(labels) - {""}))
    index = {name: position for position, name in enumerate(classes)}
    kept = [position for position, label in enumerate(labels) if label in index]
    if not kept:
        raise DataError(
            f"There are no class folders with images in {root}.",
            hint=f"Expected {card.layout if card.classes else '<folder>/<class>/<image>'}; hidden files and unknown "
            "extensions do not count.",
        )
    for sample, label in zip(samples, labels, strict=True):
        if label not in index:
            reason = "in a folder that is not a class" if label else "not in a class folder"
            ignored.append(IgnoredFile(key=sample.key, reason=reason if sample.place.part else "in no part"))
    chosen = [samples[position] for position in kept]
    return DatasetSource(
        card=card if card.classes else replace(card, classes=classes),
        keys=tuple(sample.key for sample in chosen),
        labels=np.array([index[labels[position]] for position in kept], dtype=np.int64),
        raw=FileReader(
            root=str(root),
            names=tuple(sample.path for sample in chosen),
            ignored=tuple(ignored),
            size=sum(sample.file.size for sample in chosen),
        ),
        partition=np.array([sample.place.part for sample in chosen]),
        location=str(root) if test_root is None else f"{root} and {test_root}",
        fingerprint=fingerprint(root, [sample.file for sample in samples], f"test in {test_root}"),
        remarks=layout.remarks,
    )


def _unlabelled(root: Path, card: DatasetCard, listing: Listing) -> DatasetSource:
    """Every image below ``root``, at any depth, of unknown class."""
    if not listing.files:
        raise DataError(f"There are no images in {root}.", hint="Hidden files and unknown extensions do not count.")
    keys = tuple(file.key for file in listing.files)
    return DatasetSource(
        card=card,
        keys=keys,
        labels=np.full(len(keys), UNKNOWN, dtype=np.int64),
        raw=FileReader(
            root=str(root), names=keys, ignored=listing.ignored, size=sum(file.size for file in listing.files)
        ),
        location=str(root),
        fingerprint=fingerprint(root, listing.files),
    )


@dataclass(frozen=True, kw_only=True)
class _Sample:
    """An image file on its way to a dataset; ``path`` is relative to the root, or absolute."""

    file: FoundFile
    key: str
    path: str
    place: Place


def _spelled_alike(labels: Sequence[str]) -> list[str]:
    """Class names in one spelling: some systems write "é" as one character and some as two.

    Names that occur in one spelling only are left as they are.
    """
    spellings: dict[str, set[str]] = {}
    for label in set(labels):
        spellings.setdefault(unicodedata.normalize("NFC", label), set()).add(label)
    alike = {label: joint for joint, forms in spellings.items() if len(forms) > 1 for label in forms}
    return [alike.get(label, label) for label in labels]
