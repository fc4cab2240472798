"""Executors decide where planned runs happen; what a run is does not depend on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gcdbench.runs.events import Event
from gcdbench.runs.placement import Placement
from gcdbench.runs.request import Request


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run to be executed."""

    request: Request
    placement: Placement


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a job: ``error`` is empty when it is done."""

    job: Job
    path: str
    error: str = ""


class Executor(Protocol):
    """Executes jobs; one failing job never stops another."""

    def run(self, jobs: Sequence[Job], *, parallel: int, listener: Callable[[Job, Event], None]) -> list[Outcome]:
        """Execute all jobs, at most ``parallel`` at a time; ``listener`` receives each job's events."""
