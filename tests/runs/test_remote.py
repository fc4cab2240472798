"""Jobs with an engine: what is lost goes on, what is given up says why, and nothing is submitted twice."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.events import Begun, EngineNote, JobEnded, encode_event
from gcdbench.runs.executors.base import Job
from gcdbench.runs.executors.engine import EngineConfig
from gcdbench.runs.executors.looking import look_at_queue
from gcdbench.runs.executors.queue import INTERRUPTED, Queue, QueuedJob, said_path
from gcdbench.runs.executors.remote import RemoteExecutor
from gcdbench.runs.record import FAILED
from gcdbench.testing.stored import FakeRun, write_fake_run
from tests.runs.scripted_engine import DOES_IT, ScriptedEngine, run, says, unfinished_run, vanishes


def test_a_job_whose_run_is_done_leaves_nothing_in_the_queue(job: Job) -> None:
    [outcome], heard = run(ScriptedEngine(DOES_IT), [job])
    assert (outcome.error, outcome.path, outcome.job) == ("", "somewhere", job)
    assert [event.type for event in heard] == ["outcome"]
    assert list(Queue(job.placement.runs).jobs()) == []


def test_a_lost_job_is_submitted_again_and_a_late_word_of_the_first_is_not_missed(job: Job) -> None:
    engine = ScriptedEngine([says(), vanishes, vanishes], [says(JobEnded(error=INTERRUPTED), then=None)] * 2, DOES_IT)
    [outcome], heard = run(engine, [job])
    assert not outcome.error
    assert len(engine.jobs) == 3
    assert sum(isinstance(event, EngineNote) for event in heard) == 2
    # Not seen once is not lost: the news of the end may come later than the end.
    engine = ScriptedEngine([vanishes, says(JobEnded(path="late"), then=None)])
    [outcome], _ = run(engine, [replace(job, request=replace(job.request, seed=1))])
    assert outcome.path == "late"
    assert len(engine.jobs) == 1


def test_a_worker_that_never_began_is_told_from_one_that_did_not_end(job: Job) -> None:
    [outcome], _ = run(ScriptedEngine([vanishes, vanishes]), [job], attempts=1)
    assert "once and its worker never began" in outcome.error
    assert "doctor --cluster" in outcome.error


def test_what_was_cancelled_before_a_sweep_began_is_sent_again(job: Job) -> None:
    engine = ScriptedEngine([says(then="cancelled")] * 3)
    executor = RemoteExecutor(engine, EngineConfig())
    executor.submit([job], parallel=0, listener=lambda job, event: None)
    engine.attempts = [DOES_IT]
    [outcome] = executor.run([job], parallel=0, listener=lambda job, event: None)
    assert not outcome.error
    assert len(engine.jobs) == 2


def test_a_job_that_waits_for_what_may_never_come_is_told_once(job: Job) -> None:
    engine = ScriptedEngine([says(), says(), says(), *DOES_IT])
    engine.waits = True
    _, heard = run(engine, [job])
    assert [event.message for event in heard if isinstance(event, EngineNote)] == ["Something is missing."]


def test_a_queue_forgets_runs_that_were_done_a_while_ago(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = write_fake_run(job.placement.runs, FakeRun(request=job.request), PluginManager(points=[]))
    queue = Queue(job.placement.runs)
    queued = QueuedJob(job=job, engine="scripted", engine_job="1")
    queue.write(queued)
    said = said_path(queue.file(queued.key), 1)
    said.write_text(encode_event(JobEnded(path=str(directory.path))) + "\n")
    assert look_at_queue(job.placement.runs, forget=True) == []
    assert list(queue.jobs()), "another sweep may be reading it"
    os.utime(said, (0, 0))
    assert look_at_queue(job.placement.runs) == []
    assert list(queue.jobs()), "a look changes nothing"
    look_at_queue(job.placement.runs, forget=True)
    assert not list(queue.folder.iterdir())


def test_after_its_attempts_a_run_is_marked_as_failed_with_the_reason(job: Job) -> None:
    directory = unfinished_run(job)
    begins = [says(Begun(path=str(directory.path))), vanishes, vanishes]
    [outcome], _ = run(ScriptedEngine(begins, begins), [job], attempts=2)
    record = RunDirectory(directory.path).record()
    assert record.status == FAILED
    assert record.error == outcome.error
    assert "2 times before the run was done" in record.error
    assert "NODE_FAIL" in record.error
    [left] = Queue(job.placement.runs).jobs()
    assert left.error == record.error
    # A new sweep begins with the first attempt again.
    [outcome], _ = run(ScriptedEngine(DOES_IT), [job])
    assert not outcome.error


def test_an_error_of_the_method_and_a_cancelled_job_are_not_repeated(job: Job) -> None:
    engine = ScriptedEngine([says(JobEnded(error="no such thing"), then=None)])
    [outcome], _ = run(engine, [job])
    assert outcome.error == "no such thing"
    cancelled = ScriptedEngine([says(then="cancelled")])
    [outcome], _ = run(cancelled, [job])
    assert "cancelled" in outcome.error
    assert len(engine.jobs) == len(cancelled.jobs) == 1


def test_a_full_queue_is_said_once_and_the_rest_is_tried_again(job: Job) -> None:
    jobs = [replace(job, request=replace(job.request, seed=seed)) for seed in range(5)]
    engine = ScriptedEngine(DOES_IT, room=[2, 0, 0, 1, 0, 2])
    outcomes, heard = run(engine, jobs)
    assert [outcome.error for outcome in outcomes] == [""] * 5
    assert [outcome.job for outcome in outcomes] == jobs
    assert len(engine.jobs) == 5
    assert sum(isinstance(event, EngineNote) for event in heard) == 1


def test_an_engine_that_does_not_answer_has_lost_nothing(job: Job) -> None:
    engine = ScriptedEngine(DOES_IT)
    engine.silent = 10
    [outcome], _ = run(engine, [job])
    assert not outcome.error
    assert len(engine.jobs) == 1


def test_what_is_queued_is_watched_and_not_submitted_twice(job: Job) -> None:
    engine = ScriptedEngine([says()] * 4 + DOES_IT)
    executor = RemoteExecutor(engine, EngineConfig())
    [first] = executor.submit([job], parallel=0, listener=lambda job, event: None)
    [again] = executor.submit([job], parallel=0, listener=lambda job, event: None)
    assert first.engine_job == again.engine_job
    [outcome] = executor.run([job], parallel=0, listener=lambda job, event: None)
    assert not outcome.error
    assert len(engine.jobs) == 1


def test_jobs_with_different_options_are_submitted_apart(job: Job) -> None:
    seen: list[tuple[int, int]] = []

    class Noting(ScriptedEngine):
        def submit(self, files: Sequence[Path], config: EngineConfig, at_once: int | None) -> list[str]:
            seen.append((len(files), config.attempts))
            return super().submit(files, config, at_once)

    jobs = [replace(job, request=replace(job.request, seed=seed)) for seed in range(3)]
    jobs[1] = replace(jobs[1], options={"attempts": 7})
    run(Noting(DOES_IT), jobs)
    assert sorted(seen) == [(1, 7), (2, 3)]
