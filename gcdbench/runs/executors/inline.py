"""Runs in this process, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gcdbench.runs.executors.base import Job, JobListener, Outcome
from gcdbench.runs.executors.devices import require_gpus
from gcdbench.runs.executors.job import run_job


class InlineExecutor:
    """The simplest executor, for debugging: a debugger and a profiler see everything."""

    def run(self, jobs: Sequence[Job], *, parallel: int, listener: JobListener) -> list[Outcome]:
        """Execute all jobs; ``parallel`` is ignored."""
        require_gpus(jobs)
        return [run_job(job, partial(listener, job)) for job in jobs]
