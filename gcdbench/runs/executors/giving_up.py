"""Marking a run as failed that nobody will begin again by itself."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from gcdbench.core.errors import StoreError
from gcdbench.runs.directory import RunDirectory, now
from gcdbench.runs.record import DONE, FAILED
from gcdbench.runs.strict_json import write_sealed


def give_up(run: str, reason: str) -> None:
    """Record in the run's directory why it was given up; its checkpoint stays, and a finished result is not touched."""
    directory = RunDirectory(Path(run))
    if not run or not directory.exists():
        return
    # Where the record is damaged or somebody is writing it after all, there is nothing to mark.
    with suppress(StoreError), directory.writing():
        record = directory.record()
        if record.status != DONE:
            failed = replace(record, status=FAILED, error=reason, finished=now())
            write_sealed(directory.record_path, failed.to_table())
