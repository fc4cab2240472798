"""Runs in this process, one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gcdbench.errors import GCDBenchError
from gcdbench.executors.base import Job, Outcome
from gcdbench.plan import make_plan
from gcdbench.plugins.manager import get_manager
from gcdbench.runner import execute


class InlineExecutor:
    """The simplest executor, for debugging: a debugger and a profiler see everything."""

    def run(
        self, jobs: Sequence[Job], *, parallel: int, listener: Callable[[Job, Mapping[str, Any]], None]
    ) -> list[Outcome]:
        """Execute all jobs; ``parallel`` is ignored."""
        return [self._one(job, listener) for job in jobs]

    def _one(self, job: Job, listener: Callable[[Job, Mapping[str, Any]], None]) -> Outcome:
        manager = get_manager()
        try:
            result = execute(make_plan(job.request, manager), job.placement, manager, partial(listener, job))
        except GCDBenchError as error:
            return Outcome(job=job, path="", error=error.message)
        except Exception as error:  # a method may raise anything; the other jobs go on
            return Outcome(job=job, path="", error=f"{type(error).__name__}: {error}")
        return Outcome(job=job, path=str(result.directory.path))
