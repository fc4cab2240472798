"""Jobs that were given to an engine, written down in the store: whoever looks, from any host, knows of them.

``<runs>/.queue/<key>.json`` is one job: what is asked for, where it was sent from and under which number the engine has
it; its worker reads it. ``<key>-<attempt>.jsonl`` is what the worker says, event by event. One run is one job, and the
run's own directory holds everything else.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gcdbench.core.errors import StoreError
from gcdbench.core.files import write_json
from gcdbench.core.identity import digest
from gcdbench.runs.events import Begun, Event, JobEnded, decode_event
from gcdbench.runs.executors.arrival import CORES
from gcdbench.runs.executors.base import Job
from gcdbench.runs.executors.wire import encode_job, job_of
from gcdbench.runs.request import Request
from gcdbench.runs.strict_json import Fields, read_table

FOLDER = ".queue"
KEY_LENGTH = 16
INTERRUPTED = "interrupted"
"""The error of a job that was stopped from outside and can be continued."""


@dataclass(frozen=True, kw_only=True)
class QueuedJob:
    """A job in the hands of an engine.

    engine_job: the engine's name for it, "" until it has one. attempt: counted from 1; attempts: how many it may have.
    directory: where relative paths of the request begin. environment: variables of gcdbench's own that the worker
    needs. error: why it was given up; a job with an error is not waited for. version: of gcdbench, where it was
    submitted.
    """

    job: Job
    engine: str
    engine_job: str = ""
    attempt: int = 1
    attempts: int = 1
    submitted: str = ""
    host: str = ""
    directory: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    error: str = ""
    version: str = ""

    @property
    def key(self) -> str:
        """Names the run's request; the same request has the same key on every host."""
        return request_key(self.job.request)

    def to_table(self) -> dict[str, Any]:
        """What is stored."""
        table = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        return {**table, "job": json.loads(encode_job(self.job)), "environment": dict(self.environment)}

    @classmethod
    def of_table(cls, table: Mapping[str, Any], where: str) -> QueuedJob:
        """The inverse of :meth:`to_table`; an error that names ``where`` if it is something else."""
        found = Fields(table, where)
        return cls(
            job=job_of(found.inner("job")),
            engine=found.text("engine"),
            engine_job=found.text("engine_job"),
            attempt=found.whole("attempt", least=1),
            attempts=found.whole("attempts", least=1),
            submitted=found.text("submitted"),
            host=found.text("host"),
            directory=found.text("directory"),
            environment=found.text_table("environment"),
            error=found.text("error"),
            version=found.text("version", ""),
        )


def request_key(request: Request) -> str:
    """Digest of what is asked for."""
    return digest(json.loads(json.dumps(dataclasses.asdict(request))))[:KEY_LENGTH]


class Queue:
    """The jobs of one store."""

    def __init__(self, runs: Path) -> None:
        self.folder = runs / FOLDER

    def file(self, key: str) -> Path:
        """Where the job with this key is written down."""
        return self.folder / f"{key}.json"

    def read(self, key: str) -> QueuedJob | None:
        """The job with this key; None where there is none."""
        return read_queued(self.file(key)) if self.file(key).is_file() else None

    def write(self, queued: QueuedJob) -> None:
        """Write a job down, in the place of what was known of it."""
        write_json(self.file(queued.key), queued.to_table())

    def remove(self, key: str) -> None:
        """Forget a job whose run is done: its directory says everything."""
        for path in (self.file(key), *self.folder.glob(f"{key}-*.jsonl")):
            path.unlink(missing_ok=True)

    def jobs(self) -> Iterator[QueuedJob]:
        """All jobs; a damaged entry is passed over, its run is then simply missing."""
        for path in sorted(self.folder.glob(f"{'[0-9a-f]' * KEY_LENGTH}.json")):
            try:
                yield read_queued(path)
            except StoreError:
                continue


def read_queued(file: Path) -> QueuedJob:
    """The job that a file of a queue holds."""
    return QueuedJob.of_table(read_table(file), str(file))


def log_folder(file: Path) -> Path:
    """Where what the worker prints is kept; ``file`` is the job's own."""
    return file.parent / "logs"


def log_file(file: Path) -> Path:
    """What the worker of a job prints, where its engine does not keep it itself."""
    return log_folder(file) / f"{file.stem}.log"


def said_path(file: Path, attempt: int) -> Path:
    """Where the worker of this attempt writes its events; ``file`` is the job's own."""
    return file.with_name(f"{file.stem}-{attempt}.jsonl")


class Said:
    """What the worker of one attempt has said so far, read as it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self.run = ""
        self.ended: JobEnded | None = None

    @property
    def begun(self) -> bool:
        """Whether there was a worker at all: it makes its file before it does anything else."""
        return bool(self.run) or self._path.exists()

    def news(self) -> list[Event]:
        """Events since the last call; the half of a line waits for its other half."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                content = file.read()
        except OSError:
            return []
        whole = content[: content.rfind(b"\n") + 1]
        self._position += len(whole)
        events = [event for line in whole.decode(errors="replace").splitlines() if (event := decode_event(line))]
        for event in events:
            # A job that its engine has started again says more after its first end.
            self.ended = event if isinstance(event, JobEnded) else None
            if isinstance(event, (Begun, JobEnded)) and event.path:
                self.run = event.path
        return events


def own_environment() -> dict[str, str]:
    """Variables that say where gcdbench finds things: a worker elsewhere needs the same."""
    return {key: value for key, value in os.environ.items() if key.startswith("GCDBENCH_") and key != CORES}
