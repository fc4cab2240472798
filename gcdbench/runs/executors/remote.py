"""An executor for engines that take jobs away: submits what is missing, watches, and submits again what was lost.

Whether a run is done is asked of its own directory, never of the engine; the engine says whether a job still has a
chance. A job that its engine no longer has, and whose run is not done, was lost (a kill, a node that vanished, a
preemption, a time limit): it is submitted again and resumes, up to a number of attempts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import gcdbench
from gcdbench.core.config import apply_overrides
from gcdbench.core.errors import StoreError
from gcdbench.core.locks import system_lock
from gcdbench.runs.directory import RunDirectory, now, this_host
from gcdbench.runs.events import EngineNote, JobEnded
from gcdbench.runs.executors.arrival import before_leaving
from gcdbench.runs.executors.base import Job, JobListener, Outcome
from gcdbench.runs.executors.engine import Engine, EngineBusy, EngineConfig, EngineSilent, EngineState
from gcdbench.runs.executors.giving_up import give_up, reason_to_give_up
from gcdbench.runs.executors.queue import INTERRUPTED, Queue, QueuedJob, Said, own_environment, request_key, said_path
from gcdbench.runs.record import DONE, FAILED

CANCELLED = "its job was cancelled"
SIGHTINGS = 2
"""A job counts as lost when its engine did not know it this often in a row: files may arrive later than answers."""


@dataclass(kw_only=True)
class _Watched:
    """A job on its way. asked: as the caller knows it; missed: how often its engine did not know it.

    fresh: what the queue has of an earlier job for the same run is to be forgotten before this one is submitted.
    """

    asked: Job
    queued: QueuedJob
    config: EngineConfig
    said: Said
    missed: int = 0
    fresh: bool = False
    outcome: Outcome | None = None

    @property
    def waits(self) -> bool:
        """Whether it is still to be submitted."""
        return self.outcome is None and not self.queued.engine_job


class RemoteExecutor:
    """Runs jobs through an engine; ``config`` holds for every job that does not say otherwise."""

    def __init__(self, engine: Engine, config: EngineConfig) -> None:
        self._engine = engine
        self._config = config
        self._told: set[str] = set()

    @property
    def can_be_left(self) -> bool:
        """Whether jobs continue when nobody watches."""
        return self._engine.can_be_left

    def run(self, jobs: Sequence[Job], *, parallel: int, listener: JobListener) -> list[Outcome]:
        """Submit what is not queued yet, and wait until every run is done, failed or cancelled."""
        watched = self._prepare(jobs, listener)
        try:
            while open_jobs := [job for job in watched if job.outcome is None]:
                self._submit_waiting(open_jobs, parallel, listener)
                states = self._states(open_jobs, listener)
                for job in open_jobs:
                    self._look(job, states, listener)
                for note in self._engine.notes():
                    self._tell_once(open_jobs[0], note, listener)
                if any(job.outcome is None for job in open_jobs):
                    time.sleep(self._engine.poll_seconds)
        except KeyboardInterrupt:
            names = [job.queued.engine_job for job in watched if job.outcome is None and job.queued.engine_job]
            if names and (sentence := self._engine.stop(names)):
                listener(watched[0].asked, EngineNote(message=sentence))
            raise
        finally:
            self._engine.close()
        return [job.outcome for job in watched if job.outcome is not None]

    def submit(self, jobs: Sequence[Job], *, parallel: int, listener: JobListener) -> list[QueuedJob]:
        """Submit what is not queued yet, and leave; what the engine has no room for has no ``engine_job``."""
        watched = self._prepare(jobs, listener)
        states = self._states(watched, listener)
        for job in watched:
            for _ in range(SIGHTINGS):  # they were submitted long ago: what is not known now is lost
                if job.outcome is None:
                    self._look(job, states, listener)
        self._submit_waiting([job for job in watched if job.outcome is None], parallel, listener)
        return [job.queued for job in watched if job.outcome is None]

    # Before ----------------------------------------------------------------------------------------------------------

    def _prepare(self, jobs: Sequence[Job], listener: JobListener) -> list[_Watched]:
        configs = [apply_overrides(self._config, job.options) for job in jobs]
        self._engine.check(list(zip(jobs, configs, strict=True)))
        watched = [self._adopt(job, config) for job, config in zip(jobs, configs, strict=True)]
        states = self._states(watched, listener) or {}
        for job in watched:
            # What somebody has cancelled before this sweep began, this sweep sends again.
            if states.get(job.queued.engine_job) == "cancelled":
                _queue_of(job).write(replace(job.queued, error=CANCELLED))
        return [
            self._begin(job.asked, job.config) if states.get(job.queued.engine_job) == "cancelled" else job
            for job in watched
        ]

    def _adopt(self, asked: Job, config: EngineConfig) -> _Watched:
        """What is in the queue already is watched, not submitted twice; a job that was given up begins again."""
        queue = Queue(asked.placement.runs.absolute())
        try:
            known = queue.read(request_key(asked.request))
        except StoreError:  # damaged, or of another version
            known = None
        if known is None or known.error or known.engine != self._engine.name or not self._engine.can_be_left:
            return self._begin(asked, config)
        said = Said(said_path(queue.file(known.key), known.attempt))
        return _Watched(asked=asked, queued=known, config=config, said=said)

    def _begin(self, asked: Job, config: EngineConfig) -> _Watched:
        """With the first attempt."""
        queue = Queue(asked.placement.runs.absolute())
        queued = QueuedJob(
            job=replace(asked, placement=before_leaving(asked.placement)),
            engine=self._engine.name,
            attempts=config.attempts,
            directory=os.getcwd(),
            environment=own_environment(),
            version=gcdbench.__version__,
        )
        said = Said(said_path(queue.file(queued.key), queued.attempt))
        return _Watched(asked=asked, queued=queued, config=config, said=said, fresh=True)

    # Submitting ------------------------------------------------------------------------------------------------------

    def _submit_waiting(self, jobs: Sequence[_Watched], parallel: int, listener: JobListener) -> None:
        """One submission for each set of options; where the engine takes a part only, the rest is tried again later."""
        groups: dict[EngineConfig, list[_Watched]] = {}
        for job in jobs:
            if job.waits:
                groups.setdefault(job.config, []).append(job)
        for config, members in groups.items():
            queue = _queue_of(members[0])
            queue.folder.mkdir(parents=True, exist_ok=True)
            with _alone(queue.folder):
                members = [job for job in members if not self._taken_meanwhile(job)]
                try:
                    self._submit_group(members, config, parallel)
                except (EngineBusy, EngineSilent) as busy:
                    self._tell_once(members[0], f"{busy.message} The other runs wait and are tried again.", listener)

    def _taken_meanwhile(self, job: _Watched) -> bool:
        """Whether another sweep has submitted the job since this one looked."""
        known = _queue_of(job).read(job.queued.key)
        if (
            not self._engine.can_be_left
            or known is None
            or not known.engine_job
            or known.attempt < job.queued.attempt
            or known.error
        ):
            return False
        job.queued = known
        job.said = Said(said_path(_queue_of(job).file(known.key), known.attempt))
        job.fresh = False
        return True

    def _submit_group(self, members: Sequence[_Watched], config: EngineConfig, parallel: int) -> None:
        rest = list(members)
        while rest:
            files = []
            for job in rest:
                queue = _queue_of(job)
                if job.fresh:
                    queue.remove(job.queued.key)
                    job.fresh = False
                # Written before it is submitted: the worker reads it, perhaps at once.
                queue.write(job.queued)
                files.append(queue.file(job.queued.key))
            names = self._engine.submit(files, config, parallel or None)
            for job, name in zip(rest, names, strict=False):
                job.queued = replace(job.queued, engine_job=name, submitted=now(), host=this_host())
                job.missed = 0
                _queue_of(job).write(job.queued)
            rest = rest[len(names) :]

    # Watching --------------------------------------------------------------------------------------------------------

    def _states(self, jobs: Sequence[_Watched], listener: JobListener) -> Mapping[str, EngineState] | None:
        names = [job.queued.engine_job for job in jobs if job.queued.engine_job]
        if not names:
            return {}
        try:
            return self._engine.states(names)
        except EngineSilent as silent:
            self._tell_once(jobs[0], silent.message, listener)
            return None

    def _look(self, job: _Watched, states: Mapping[str, EngineState] | None, listener: JobListener) -> None:
        """Pass on what the worker has said, and decide whether the job is over or lost."""
        if not job.queued.engine_job:
            return
        for event in job.said.news():
            if not isinstance(event, JobEnded):
                listener(job.asked, event)
        ended = job.said.ended
        if ended is not None and ended.error != INTERRUPTED:
            self._end(job, Outcome.of_event(job.asked, ended), listener)
            return
        state = None if states is None else states.get(job.queued.engine_job)
        if states is None or state in ("queued", "running"):
            job.missed = 0
            return
        job.missed += 1
        if state == "cancelled":
            self._end(job, Outcome(job=job.asked, path=job.said.run, error=CANCELLED), listener)
        elif job.missed >= SIGHTINGS:
            self._lost(job, listener)

    def _lost(self, job: _Watched, listener: JobListener) -> None:
        """The engine no longer has the job, and the worker did not say how it ended: the run's own record decides."""
        recorded = _recorded(job.said.run)
        if recorded == DONE:
            self._end(job, Outcome(job=job.asked, path=job.said.run), listener)
            return
        if recorded == FAILED:
            error = RunDirectory(Path(job.said.run)).record().error
            self._end(job, Outcome(job=job.asked, path=job.said.run, error=error), listener)
            return
        queued = job.queued
        if queued.attempt >= queued.attempts:
            last_words = self._engine.last_words(queued.engine_job)
            reason = reason_to_give_up(queued, began=job.said.begun, last_words=last_words)
            give_up(job.said.run, reason)
            self._end(job, Outcome(job=job.asked, path=job.said.run, error=reason), listener)
            return
        again = f"Job {queued.engine_job} ended before its run; the run continues as attempt {queued.attempt + 1}."
        listener(job.asked, EngineNote(message=again))
        run = job.said.run
        job.queued = replace(queued, engine_job="", attempt=queued.attempt + 1, version=gcdbench.__version__)
        job.said = Said(said_path(_queue_of(job).file(queued.key), job.queued.attempt))
        job.said.run = run

    def _end(self, job: _Watched, outcome: Outcome, listener: JobListener) -> None:
        job.outcome = outcome
        queue = _queue_of(job)
        if outcome.error:
            queue.write(replace(job.queued, error=outcome.error))
        else:
            queue.remove(job.queued.key)
        listener(job.asked, outcome.event())

    def _tell_once(self, job: _Watched, message: str, listener: JobListener) -> None:
        if message not in self._told:
            self._told.add(message)
            listener(job.asked, EngineNote(message=message))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep two sweeps from submitting the same jobs at the same moment, where the file system has locks."""
    lock = system_lock(folder / "lock")
    with suppress(OSError, NotImplementedError):
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _queue_of(job: _Watched) -> Queue:
    return Queue(job.queued.job.placement.runs)


def _recorded(run: str) -> str:
    """What the record of a run says about its end; "" where it says nothing."""
    if not run:
        return ""
    try:
        return RunDirectory(Path(run)).status()
    except StoreError:
        return ""
