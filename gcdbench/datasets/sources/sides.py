"""Labelled images of known classes and images that nobody has labelled, as one dataset."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from gcdbench.core.errors import DataError
from gcdbench.datasets.source import UNKNOWN, DatasetRequest, DatasetSource, Remark
from gcdbench.datasets.sources.folder import make_folder
from gcdbench.datasets.sources.kinds import deepest_kind, needed_decoder
from gcdbench.datasets.sources.listed import make_csv
from gcdbench.datasets.sources.memory import remembered
from gcdbench.datasets.sources.own import made_card
from gcdbench.datasets.sources.walk import FileReader

DISCOVERY = "discovery"
"""Name of every dataset that is made here: a folder's own name may be a patient's, and the name is recorded."""


def open_sides(labelled: Path, unlabelled: Path | None, options: Mapping[str, str] | None = None) -> DatasetSource:
    """One dataset of two folders or lists; images below ``unlabelled`` and those without a label are of unknown class.

    A folder of labelled images holds one folder per class; ``unlabelled`` is searched to any depth, and labels in it
    are not looked at. Without ``unlabelled`` the labelled list must have rows without a label. Keys are whole paths.
    """
    options = dict(options or {})
    known = _open(labelled, options)
    sides = [known] if unlabelled is None else [known, _open(unlabelled, {**options, "labels": "none"})]
    paths = [_paths(side) for side in sides]
    seen = {os.path.realpath(path) for path in paths[0]}
    kept = [np.arange(len(known))]
    if unlabelled is not None:
        kept.append(np.flatnonzero([os.path.realpath(path) not in seen for path in paths[1]]))
    names = tuple(paths[side][row] for side, rows in enumerate(kept) for row in rows.tolist())
    labels = np.concatenate([side.labels[rows] for side, rows in zip(sides, kept, strict=True)])
    _require_both(labels, known, unlabelled)
    where = " and ".join(side.location for side in sides)
    marks = [side.fingerprint or "" for side in sides]
    source = DatasetSource(
        card=replace(made_card(DISCOVERY, where), classes=known.card.classes),
        keys=names,
        labels=labels,
        raw=FileReader(root="", names=names),
        groups=_groups(sides, kept),
        location=where,
        fingerprint=hashlib.sha256("\n".join(marks).encode()).hexdigest(),
        remarks=(*(remark for side in sides for remark in side.remarks), *_remarks(sides, kept)),
        accepted_issues=_counted_issues(sides),
    )
    return replace(source, decode=needed_decoder(remembered("depth", source, lambda: deepest_kind(names))))


def _open(place: Path, options: Mapping[str, str]) -> DatasetSource:
    if not place.exists():
        raise DataError(f"There is no folder or file '{place}'.")
    make = make_folder if place.is_dir() else make_csv
    return make(DatasetRequest(name=DISCOVERY, argument=str(place.absolute()), options=dict(options)))


def _paths(source: DatasetSource) -> list[str]:
    reader = source.raw
    assert isinstance(reader, FileReader)
    return [os.path.normpath(reader.path(row)) for row in range(len(source))]


def _require_both(labels: np.ndarray, known: DatasetSource, unlabelled: Path | None) -> None:
    if not (labels != UNKNOWN).any():
        raise DataError(
            f"No image in {known.location} has a label.",
            hint="Give some images of known classes: a folder with one folder per class, or a CSV with path and label.",
        )
    if (labels != UNKNOWN).all():
        where = f"beyond the labelled ones in {unlabelled}" if unlabelled else "without a label"
        raise DataError(
            f"There are no images {where}: there is nothing to discover.", hint="Give images that nobody has labelled."
        )


def _groups(sides: list[DatasetSource], kept: list[np.ndarray]) -> np.ndarray | None:
    """Names of groups where every side has them; a patient may be on both."""
    groups = [side.groups[rows] for side, rows in zip(sides, kept, strict=True) if side.groups is not None]
    return np.concatenate(groups) if len(groups) == len(sides) else None


def _remarks(sides: list[DatasetSource], kept: list[np.ndarray]) -> tuple[Remark, ...]:
    left = sum(len(side) - len(rows) for side, rows in zip(sides, kept, strict=True))
    if not left:
        return ()
    return (
        Remark(kind="sides", message=f"{left:,} labelled images are among the unlabelled ones, too; they count once"),
    )


def _counted_issues(sides: list[DatasetSource]) -> tuple[str, ...]:
    """Faults that were accepted, as sentences that name no file: they are recorded with the run."""
    return tuple(
        f"{role}: {issue}"
        for role, side in zip(("labelled side", "unlabelled side"), sides, strict=False)
        for issue in side.accepted_issues
    )
