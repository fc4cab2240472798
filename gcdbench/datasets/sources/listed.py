"""Datasets that are a list of files: ``csv:<file>`` with the columns path, label and, optionally, group and part."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np

from gcdbench.core.errors import DataError
from gcdbench.datasets.roots import resolve_argument
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.datasets.sources.folder import PARTS, made_card, safe_name
from gcdbench.datasets.sources.options import refuse_unknown_options
from gcdbench.datasets.sources.walk import FileReader, FoundFile, file_stamp, fingerprint, found_file

COLUMNS = ("path", "label", "group", "part")


def make_csv(request: DatasetRequest) -> DatasetSource:
    """``csv:<file>``: paths are relative to the file's folder; ``part`` is train, val or test."""
    refuse_unknown_options(request)
    file = resolve_argument(request.argument, request.roots, "csv")
    rows = read_table(file, required=COLUMNS[:2])
    if not rows:
        raise DataError(f"{file} lists no images.")
    found = [_locate(file, line, row["path"]) for line, row in rows]
    _refuse_contradictions(file, rows)
    classes = _ordered({row["label"] for _, row in rows})
    index = {name: position for position, name in enumerate(classes)}
    has_groups = any(row.get("group") for _, row in rows)
    return DatasetSource(
        card=replace(made_card(f"csv-{safe_name(file.stem)}", str(file)), classes=classes),
        keys=tuple(entry.key for entry in found),
        labels=np.array([index[row["label"]] for _, row in rows], dtype=np.int64),
        raw=FileReader(
            root=str(file.parent), names=tuple(entry.key for entry in found), size=sum(entry.size for entry in found)
        ),
        partition=np.array([_part(file, line, row.get("part") or "train") for line, row in rows]),
        groups=np.array([row.get("group") or f"line {line}" for line, row in rows]) if has_groups else None,
        location=str(file),
        fingerprint=fingerprint(file.parent, found, file_stamp(file)),
    )


def read_table(file: Path, *, required: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    """Rows of a CSV file with a header, each with its line number; cells are stripped."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as handle:
            reader = csv.DictReader(handle)
            missing = [name for name in required if name not in (reader.fieldnames or ())]
            if missing:
                header = ", ".join(reader.fieldnames or ()) or "nothing"
                raise DataError(
                    f"{file} has no column '{missing[0]}': its first line names {header}.",
                    hint=f"The first line must name the columns: {','.join(required)}.",
                )
            return [
                (reader.line_num, {key: (value or "").strip() for key, value in row.items() if key is not None})
                for row in reader
            ]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{file} is not a CSV file in UTF-8: {error}.") from None
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}.") from None


def _locate(file: Path, line: int, path: str) -> FoundFile:
    try:
        return found_file(file.parent, path)
    except OSError as error:
        raise DataError(f"{file}, line {line}: '{path}' cannot be read: {error.strerror or error}.") from None


def _refuse_contradictions(file: Path, rows: list[tuple[int, dict[str, str]]]) -> None:
    seen: dict[str, tuple[int, str]] = {}
    for line, row in rows:
        if not row["label"]:
            raise DataError(f"{file}, line {line}: '{row['path']}' has no label.")
        first = seen.setdefault(row["path"], (line, row["label"]))
        if first[0] != line:
            raise DataError(
                f"{file}, line {line}: '{row['path']}' was listed before, in line {first[0]}"
                + (f", as '{first[1]}'." if first[1] != row["label"] else "."),
            )


def _ordered(names: set[str]) -> tuple[str, ...]:
    """Sorted by number where all are numbers, else by text."""
    if all(name.isdecimal() for name in names):
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    return tuple(sorted(names))


def _part(file: Path, line: int, name: str) -> str:
    if name not in PARTS:
        raise DataError(f"{file}, line {line}: the part '{name}' is none of {', '.join(PARTS)}.")
    return PARTS[name]
