"""Executors decide where planned runs happen; what a run is does not depend on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gcdbench.runs.plan import Placement, RunRequest

EventListener = Callable[[Mapping[str, Any]], None]
"""Receives the events of one job, last of all ``{"type": "outcome", …}``."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run to be executed."""

    request: RunRequest
    placement: Placement


JobListener = Callable[[Job, Mapping[str, Any]], None]
"""Receives the events of many jobs, each with the job it is of; from several threads, perhaps."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a job: ``error`` is empty when it is done; ``reused`` when it had been done before."""

    job: Job
    path: str = ""
    error: str = ""
    reused: bool = False

    def event(self) -> dict[str, Any]:
        """The last event of the job."""
        return {"type": "outcome", "path": self.path, "error": self.error, "reused": self.reused}

    @classmethod
    def of_event(cls, job: Job, event: Mapping[str, Any]) -> Outcome:
        """The inverse of :meth:`event`."""
        return cls(
            job=job,
            path=str(event.get("path", "")),
            error=str(event.get("error", "")),
            reused=bool(event.get("reused")),
        )


class Executor(Protocol):
    """Executes jobs; one failing job never stops another.

    An executor need not know what a job is: it brings each to where :func:`gcdbench.api.run_job` may be called (as
    JSON: ``encode_job``, ``decode_job``), and the events and the outcome back.
    """

    def run(self, jobs: Sequence[Job], *, parallel: int, listener: JobListener) -> list[Outcome]:
        """Execute all jobs, at most ``parallel`` at a time; ``listener`` receives each job's events."""
