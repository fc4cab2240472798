"""Datasets that are a list of files: ``csv:<file>`` with the columns path, label and, optionally, group and part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gcdbench.core.errors import DataError
from gcdbench.datasets.roots import resolve_argument
from gcdbench.datasets.source import UNKNOWN, DatasetRequest, DatasetSource
from gcdbench.datasets.sources.layout import Place
from gcdbench.datasets.sources.options import choose_option, refuse_unknown_options
from gcdbench.datasets.sources.own import OWN_OPTIONS, finish, made_card, safe_name, skips_unreadable
from gcdbench.datasets.sources.parts import PART_NAMES, part_of
from gcdbench.datasets.sources.table import Column, read_table
from gcdbench.datasets.sources.unreadable import left_out
from gcdbench.datasets.sources.walk import FileReader, FoundFile, IgnoredFile, file_stamp, fingerprint, found_file

COLUMNS = (
    Column(name="path", others=("file", "filename", "file_name", "filepath", "image", "image_path")),
    Column(name="label", others=("class", "category", "diagnosis")),
    Column(name="group", required=False),
    Column(name="part", required=False),
)

Row = tuple[int, dict[str, str]]


def make_csv(request: DatasetRequest) -> DatasetSource:
    """``csv:<file>``: paths are absolute or relative to the file's folder; an empty label means an unknown class.

    Options: ``path``, ``label``, ``group`` and ``part`` name the columns where they are called otherwise; ``groups``
    takes groups from paths or DICOM fields as for ``folder:``; ``labels=none`` reads a list without labels;
    ``on_unreadable=skip`` leaves out what is missing or cannot be decoded.
    """
    names = [column.name for column in COLUMNS]
    refuse_unknown_options(request, *names, *OWN_OPTIONS)
    labelled = choose_option(request, "labels", ("column", "none")) != "none"
    file = resolve_argument(request.argument, request.roots, "csv")
    wanted = [column for column in COLUMNS if labelled or column.name != "label"]
    chosen = {name: request.options[name] for name in names if name in request.options}
    listed = read_table(file, wanted, chosen=chosen).rows
    if not listed:
        raise DataError(f"{file} lists no images.")
    rows, found, gone = _locate_all(file, listed, skip=skips_unreadable(request))
    _refuse_repetitions(file, rows, [entry.key for entry in found])
    has_groups = any(row.get("group") for _, row in rows)
    if has_groups and "groups" in request.options:
        raise DataError(f"{file} has a column of groups, and the option 'groups' asks for others: leave one out.")
    labels = [row.get("label", "") for _, row in rows]
    classes = _ordered(set(labels) - {""})
    index = {name: position for position, name in enumerate(classes)} | {"": UNKNOWN}
    source = DatasetSource(
        card=replace(made_card(f"csv-{safe_name(file.stem)}", str(file)), classes=classes),
        keys=tuple(entry.key for entry in found),
        labels=np.array([index[label] for label in labels], dtype=np.int64),
        raw=FileReader(
            root=str(file.parent),
            names=tuple(entry.key for entry in found),
            ignored=tuple(gone),
            size=sum(entry.size for entry in found),
        ),
        partition=np.array([_part(file, line, row.get("part") or "train") for line, row in rows]),
        groups=np.array([row.get("group") or f"line {line}" for line, row in rows]) if has_groups else None,
        location=str(file),
        fingerprint=fingerprint(file.parent, found, file_stamp(file)),
    )
    source = left_out(source, gone) if gone else source
    return finish(source, request, lambda key: Place(below=tuple(key.split("/")[:-1])))


def _locate_all(file: Path, rows: Sequence[Row], *, skip: bool) -> tuple[list[Row], list[FoundFile], list[IgnoredFile]]:
    """The rows whose files are here, those files, and, with ``skip``, the files that are not."""
    here: list[Row] = []
    found: list[FoundFile] = []
    gone: list[IgnoredFile] = []
    for line, row in rows:
        try:
            found.append(_locate(file, line, row["path"]))
            here.append((line, row))
        except _NotThere as error:
            if not skip:
                raise
            gone.append(IgnoredFile(key=row["path"], reason=error.reason))
    if not found:
        raise DataError(f"None of the {len(rows):,} files that {file} lists can be read: {gone[0].key} is missing.")
    return here, found, gone


class _NotThere(DataError):
    """A file that a list names and that cannot be read."""

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


def _locate(file: Path, line: int, path: str) -> FoundFile:
    """The file that a row names; where there is none, backslashes may be meant as separators."""
    if not path:
        raise DataError(f"{file}, line {line}, names no file.")
    try:
        return found_file(file.parent, path)
    except OSError as error:
        if "\\" in path and (file.parent / (other := path.replace("\\", "/"))).exists():
            return _locate(file, line, other)
        reason = error.strerror or str(error)
        raise _NotThere(f"{file}, line {line}: '{path}' cannot be read: {reason}.", reason=reason) from None


def _refuse_repetitions(file: Path, rows: Sequence[Row], keys: Sequence[str]) -> None:
    seen: dict[str, tuple[int, str]] = {}
    for (line, row), key in zip(rows, keys, strict=True):
        label = row.get("label", "")
        first = seen.setdefault(key, (line, label))
        if first[0] != line:
            raise DataError(
                f"{file}, line {line}: '{row['path']}' was listed before, in line {first[0]}"
                + (f", as '{first[1]}'." if first[1] != label else "."),
            )


def _ordered(names: set[str]) -> tuple[str, ...]:
    """Sorted by number where all are numbers, else by text."""
    if all(name.isdecimal() for name in names):
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    return tuple(sorted(names))


def _part(file: Path, line: int, name: str) -> str:
    part = part_of(name)
    if part is None:
        raise DataError(f"{file}, line {line}: the part '{name}' is not one of {', '.join(PART_NAMES)}.")
    return part
