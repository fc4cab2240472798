"""Bringing back what a killed process left half done; always with the run's lock held."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

from gcdbench.core.errors import StoreError
from gcdbench.core.files import write_json
from gcdbench.runs.attempt import PREVIOUS, settle
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.reader import RECORD, read_record
from gcdbench.runs.record import DONE, Record
from gcdbench.runs.strict_json import open_regular, read_table


def recover(directory: RunDirectory) -> None:
    """Complete a result that is not in its place yet, and bring back one that version 0.1 had set aside."""
    try:
        record = directory.record()
    except StoreError:
        record = None
    if record is not None and record.folder:
        settle(directory)
    if not (directory.path / PREVIOUS).is_dir():
        return
    if record is not None and record.status == DONE:
        shutil.rmtree(directory.path / PREVIOUS, ignore_errors=True)  # the new result was complete
    elif (found := set_aside(directory)) is not None:
        _bring_back(directory, found)


def set_aside(directory: RunDirectory) -> Record | None:
    """The finished run that version 0.1 had moved to ``previous/`` to do it again, where its predictions are whole.

    0.1 marked run.json as interrupted, moved file by file, and wrote ``previous/run.json`` last. A kill in between
    left its record in run.json and its files in both places.
    """
    previous = directory.path / PREVIOUS
    for home in (previous, directory.path):
        try:
            record = read_record(home)
        except StoreError:
            continue
        if not record.predictions or (home == previous and record.status != DONE):
            continue
        if all(_find(directory, entry.file, entry.sha256) for entry in record.predictions.values()):
            return record
    return None


def _find(directory: RunDirectory, name: str, sha256: str) -> Path | None:
    for home in (directory.path / PREVIOUS, directory.path):
        try:
            with open_regular(home / name) as file:
                if hashlib.file_digest(file, "sha256").hexdigest() == sha256:
                    return home / name
        except StoreError:
            continue
    return None


def _bring_back(directory: RunDirectory, record: Record) -> None:
    """Move everything from ``previous/`` to its place; the record comes last and makes the run done."""
    previous = directory.path / PREVIOUS
    table: dict[str, Any] = read_table(record.path / RECORD)
    for entry in sorted(previous.iterdir()):
        if entry.name == RECORD:
            continue
        target = directory.path / entry.name
        if target.is_dir() and entry.is_dir():
            # Moved file by file: a kill in between must leave each file in one of the two places.
            for file in sorted(entry.iterdir()):
                file.replace(target / file.name)
            entry.rmdir()
            continue
        if target.is_dir():
            shutil.rmtree(target)
        entry.replace(target)
    write_json(directory.record_path, {**table, "status": DONE})
    shutil.rmtree(previous, ignore_errors=True)
