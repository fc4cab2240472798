"""Runs in this process, one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from gcdbench.core.errors import GCDBenchError
from gcdbench.plugins.manager import get_manager
from gcdbench.runs.events import Event, JobEnded
from gcdbench.runs.execution import Execution
from gcdbench.runs.executors.base import Job, Outcome
from gcdbench.runs.plan import make_plan
from gcdbench.runs.runner import execute


class InlineExecutor:
    """The simplest executor, for debugging: a debugger and a profiler see everything."""

    def run(self, jobs: Sequence[Job], *, parallel: int, listener: Callable[[Job, Event], None]) -> list[Outcome]:
        """Execute all jobs; ``parallel`` is ignored."""
        return [self._one(job, listener) for job in jobs]

    def _one(self, job: Job, listener: Callable[[Job, Event], None]) -> Outcome:
        path, error, reused = "", "", False
        manager = get_manager()
        try:
            plan = make_plan(job.request, manager)
            result = execute(
                Execution(plan=plan, placement=job.placement, manager=manager, listener=partial(listener, job))
            )
            path, reused = str(result.directory.path), result.reused
        except GCDBenchError as problem:
            error = problem.message
        except Exception as problem:  # a method may raise anything; the other jobs go on
            error = f"{type(problem).__name__}: {problem}"
        listener(job, JobEnded(path=path, error=error, reused=reused))
        return Outcome(job=job, path=path, error=error)
