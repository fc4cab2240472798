"""A run that is given up: the reason in a sentence, and its record that says so."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from gcdbench.core.errors import StoreError
from gcdbench.runs.directory import RunDirectory, now
from gcdbench.runs.executors.queue import QueuedJob
from gcdbench.runs.record import DONE, FAILED
from gcdbench.runs.strict_json import write_sealed


def reason_to_give_up(queued: QueuedJob, *, began: bool, last_words: str) -> str:
    """Why a job is not submitted again. began: whether its worker ever reported anything."""
    words = f" ({last_words.rstrip('.')})" if last_words else ""
    if began:
        ended, advice = "before the run was done", "allow more time or memory, or more 'attempts'"
    else:
        ended = "and its worker never began"
        advice = "'gcdbench doctor --cluster' says whether workers see the store and have the same installation"
    often = times(queued.attempt)
    return f"{queued.engine} ended its job {often} {ended}, last as job {queued.engine_job}{words}; {advice}"


def times(count: int) -> str:
    """How often, in words that fit a sentence."""
    return "once" if count == 1 else f"{count} times"


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


def last_line(file: Path) -> str:
    """The last line of what a worker has printed, shortened; "" where there is none."""
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, file.stat().st_size - 4096))
            lines = stream.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((text[:300] for line in reversed(lines) if (text := line.strip())), "")
