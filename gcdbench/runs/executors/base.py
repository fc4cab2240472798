"""Executors decide where planned runs happen; what a run is does not depend on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gcdbench.runs.events import Event, JobEnded
from gcdbench.runs.placement import Placement
from gcdbench.runs.request import Request

EventListener = Callable[[Event], None]
"""Receives the events of one job, last of all a :class:`gcdbench.runs.events.JobEnded`."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run to be executed. options: settings of the executor for this job alone, by dotted key."""

    request: Request
    placement: Placement
    options: Mapping[str, object] = field(default_factory=dict)


JobListener = Callable[[Job, Event], None]
"""Receives the events of many jobs, each with the job it is of; from several threads, perhaps."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a job: ``error`` is empty when it is done; ``reused`` when it had been done before.

    ``busy``: another process is writing the run at the moment, so it was not even begun.
    """

    job: Job
    path: str = ""
    error: str = ""
    reused: bool = False
    busy: bool = False

    def event(self) -> JobEnded:
        """The last event of the job."""
        return JobEnded(path=self.path, error=self.error, reused=self.reused)

    @classmethod
    def of_event(cls, job: Job, event: JobEnded) -> Outcome:
        """The inverse of :meth:`event`."""
        return cls(job=job, path=event.path, error=event.error, reused=event.reused)


class Executor(Protocol):
    """Executes jobs; one failing job never stops another.

    An executor need not know what a job is: it brings each to where :func:`gcdbench.api.run_job` may be called (as
    JSON: ``encode_job``, ``decode_job``), and the events and the outcome back.
    """

    def run(self, jobs: Sequence[Job], *, parallel: int, listener: JobListener) -> list[Outcome]:
        """Execute all jobs, at most ``parallel`` at a time; ``listener`` receives each job's events."""
