"""What became of the jobs in a store's queue, for whoever looks without watching."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gcdbench.core.errors import GCDBenchError, StoreError
from gcdbench.runs.directory import RunDirectory, this_host
from gcdbench.runs.executors.engine import EngineState
from gcdbench.runs.executors.queue import INTERRUPTED, Queue, QueuedJob, Said, said_path
from gcdbench.runs.leases import age_of
from gcdbench.runs.record import DONE, RUNNING

LOST, FAILED, UNKNOWN = "lost", "failed", "unknown"
ALIVE = ("queued", "running", UNKNOWN)
"""States of jobs that must not be submitted a second time."""
KEPT_SECONDS = 600.0
"""Another sweep may still read what the worker of a finished run has said."""


@dataclass(frozen=True, kw_only=True)
class SeenJob:
    """A queued job and its state: queued, running, cancelled, lost (its engine no longer has it), failed, unknown.

    run: the directory of its run, "" before it has begun.
    """

    queued: QueuedJob
    state: str
    run: str = ""
    problem: str = ""

    @property
    def alive(self) -> bool:
        """Whether the job is still in the hands of its engine, as far as can be told."""
        return self.state in ALIVE


def look_at_queue(runs: Path, *, forget: bool = False) -> list[SeenJob]:
    """Every job of the store whose run is not done. An engine that cannot be asked from here leaves them unknown.

    forget: those whose run was done a while ago are dropped from the queue; their directories say everything.
    """
    queue = Queue(runs.absolute())
    jobs = list(queue.jobs())
    states: dict[str, Mapping[str, EngineState] | None] = {}
    for engine in {job.engine for job in jobs if not job.error}:
        names = [job.engine_job for job in jobs if job.engine == engine and job.engine_job]
        states[engine] = _ask(engine, names)
    seen = []
    for job in jobs:
        if (found := _see(queue, job, states.get(job.engine))) is not None:
            seen.append(found)
        elif forget and age_of(said_path(queue.file(job.key), job.attempt)) > KEPT_SECONDS:
            queue.remove(job.key)
    return seen


def _see(queue: Queue, queued: QueuedJob, states: Mapping[str, EngineState] | None) -> SeenJob | None:
    said = Said(said_path(queue.file(queued.key), queued.attempt))
    said.news()
    if _recorded(said.run) == DONE:
        return None
    if queued.error:
        return SeenJob(queued=queued, state=FAILED, run=said.run, problem=queued.error)
    if said.ended is not None and said.ended.error not in ("", INTERRUPTED):
        return SeenJob(queued=queued, state=FAILED, run=said.run, problem=said.ended.error)
    if states is None:
        return SeenJob(queued=queued, state=UNKNOWN, run=said.run)
    state = states.get(queued.engine_job)
    if state is None and _recorded(said.run) == RUNNING:  # its engine cannot be asked, but its heart beats
        state = "running"
    return SeenJob(queued=queued, state=state or LOST, run=said.run)


def _recorded(run: str) -> str:
    try:
        return RunDirectory(Path(run)).status() if run else ""
    except StoreError:
        return ""


def _ask(engine: str, names: list[str]) -> Mapping[str, EngineState] | None:
    """The states as far as they can be found out from here; without an answer None."""
    try:
        return _ASKING.get(engine, _ask_processes)(names)
    except GCDBenchError:
        return None


def _ask_slurm(names: list[str]) -> Mapping[str, EngineState]:
    from gcdbench.runs.executors.slurm import SlurmEngine

    return SlurmEngine().states(names)


def _ask_processes(names: list[str]) -> Mapping[str, EngineState]:
    """Jobs of an engine that cannot be left live as long as the sweep whose process their names tell."""
    alive: dict[str, EngineState] = {}
    for name in names:
        host, _, rest = name.partition("/")
        pid = rest.partition("/")[0]
        if host == this_host() and pid.isdecimal() and Path("/proc", pid).exists():
            alive[name] = "queued"
    return alive


_ASKING: dict[str, Callable[[list[str]], Mapping[str, EngineState]]] = {"slurm": _ask_slurm}
