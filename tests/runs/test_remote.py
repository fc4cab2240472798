"""Jobs with an engine: what is lost goes on, what is given up says why, and nothing is submitted twice."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import gcdbench
from gcdbench.core.errors import ConfigError, StoreError
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.events import Begun, EngineNote, Event, JobEnded, encode_event
from gcdbench.runs.executors.arrival import AUTO, before_leaving, on_arrival
from gcdbench.runs.executors.base import Job
from gcdbench.runs.executors.dask_task import own_share
from gcdbench.runs.executors.engine import EngineBusy, EngineConfig, EngineSilent, EngineState
from gcdbench.runs.executors.looking import look_at_queue
from gcdbench.runs.executors.queue import INTERRUPTED, Queue, QueuedJob, Said, read_queued, request_key, said_path
from gcdbench.runs.executors.queue_worker import _too_many_starts
from gcdbench.runs.executors.remote import RemoteExecutor
from gcdbench.runs.executors.slurm import SlurmConfig
from gcdbench.runs.executors.wire import decode_job, encode_job
from gcdbench.runs.placement import Placement
from gcdbench.runs.record import FAILED, RUNNING
from gcdbench.runs.request import Request
from gcdbench.runs.strict_json import write_sealed
from gcdbench.testing.stored import FakeRun, write_fake_run

Turn = Callable[[Path], EngineState | None]
"""What happens to a job between two looks: it may write events to this file; its state afterwards."""


class ScriptedEngine:
    """An engine whose jobs do what a script says, one turn for each look."""

    name = "scripted"
    poll_seconds = 0.0
    can_be_left = True

    def __init__(self, *attempts: Sequence[Turn], room: Sequence[int] = ()) -> None:
        self.attempts = list(attempts)
        self.room = list(room)
        self.jobs: dict[str, tuple[Path, Iterator[Turn]]] = {}
        self.silent = 0
        self.waits = False

    def check(self, jobs: Sequence[tuple[Job, EngineConfig]]) -> None:
        pass

    def submit(self, files: Sequence[Path], config: EngineConfig, at_once: int | None) -> list[str]:
        room = self.room.pop(0) if self.room else len(files)
        if not room:
            raise EngineBusy("The queue is full.")
        names = []
        for file in files[:room]:
            queued = read_queued(file)
            name = f"job-{len(self.jobs)}"
            script = self.attempts[min(queued.attempt, len(self.attempts)) - 1]
            self.jobs[name] = (said_path(file, queued.attempt), iter(script))
            names.append(name)
        return names

    def states(self, names: Sequence[str]) -> Mapping[str, EngineState]:
        if self.silent:
            self.silent -= 1
            raise EngineSilent("No answer.")
        found: dict[str, EngineState] = {}
        for name in names:
            path, script = self.jobs[name]
            turn = next(script, None)
            if turn is not None and (state := turn(path)) is not None:
                found[name] = state
        return found

    def notes(self) -> Sequence[str]:
        return ["Something is missing."] if self.waits else []

    def last_words(self, name: str) -> str:
        return "NODE_FAIL"

    def stop(self, names: Sequence[str]) -> str:
        return ""

    def close(self) -> None:
        pass


def says(*events: Event, then: EngineState | None = "running") -> Turn:
    def turn(path: Path) -> EngineState | None:
        with path.open("a") as file:
            file.writelines(encode_event(event) + "\n" for event in events)
        return then

    return turn


def vanishes(path: Path) -> None:
    return None


DOES_IT = [says(), says(JobEnded(path="somewhere"), then=None)]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(
        request=Request(method="kmeans", dataset="phantom", preset="smoke"),
        placement=Placement(runs=tmp_path / "runs", device=AUTO),
    )


def run(engine: ScriptedEngine, jobs: Sequence[Job], attempts: int = 3) -> tuple[list[Any], list[Event]]:
    heard: list[Event] = []
    executor = RemoteExecutor(engine, EngineConfig(attempts=attempts))
    outcomes = executor.run(jobs, parallel=0, listener=lambda job, event: heard.append(event))
    return outcomes, heard


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


def _unfinished_run(job: Job) -> RunDirectory:
    directory = write_fake_run(job.placement.runs, FakeRun(request=job.request), PluginManager(points=[]))
    write_sealed(directory.record_path, replace(directory.record(), status=RUNNING).to_table())
    return RunDirectory(directory.path)


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


def test_a_worker_of_another_version_refuses_and_says_both(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    from gcdbench.runs.executors import queue_worker

    queue = Queue(job.placement.runs)
    queued = QueuedJob(job=job, engine="dask", version="9.8.7", directory="/")
    queue.write(queued)
    assert queue_worker._work(queue.file(queued.key), watched=False) == 1
    said = Said(said_path(queue.file(queued.key), 1))
    said.news()
    assert said.ended is not None
    assert "9.8.7" in said.ended.error
    assert gcdbench.__version__ in said.ended.error


def test_a_worker_that_cannot_enter_the_directory_of_the_sweep_says_so(job: Job, tmp_path: Path) -> None:
    from gcdbench.runs.executors import queue_worker

    queue = Queue(job.placement.runs)
    queued = QueuedJob(job=job, engine="dask", directory=str(tmp_path / "nowhere"))
    queue.write(queued)
    assert queue_worker._work(queue.file(queued.key), watched=False) == 1
    said = Said(said_path(queue.file(queued.key), 1))
    said.news()
    assert said.ended is not None
    assert "nowhere" in said.ended.error


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


def test_what_the_user_wants_to_observe_travels_with_the_jobs(tmp_path: Path) -> None:
    from gcdbench.cli.sweep_jobs import remote_placement

    placement = remote_placement(
        runs=tmp_path,
        data_root=None,
        device=None,
        threads=None,
        side_by_side=0,
        accept_data_issues=False,
        disk_budget="6GB",
        observe=("tensorboard",),
    )
    job = decode_job(encode_job(Job(request=Request(method="kmeans", dataset="phantom"), placement=placement)))
    assert (job.placement.disk_budget, job.placement.observe) == ("6GB", ("tensorboard",))


def test_after_its_attempts_a_run_is_marked_as_failed_with_the_reason(job: Job) -> None:
    directory = _unfinished_run(job)
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


def test_a_queued_job_is_read_back_as_it_was_and_a_damaged_one_is_refused(job: Job) -> None:
    queue = Queue(job.placement.runs)
    queued = QueuedJob(job=replace(job, options={"time": 3}), engine="slurm", engine_job="12_3", environment={"A": "b"})
    queue.write(queued)
    assert queue.read(request_key(job.request)) == queued
    queue.file(queued.key).write_text('{"job": {"request": 3}}')
    assert list(queue.jobs()) == []
    with pytest.raises(StoreError):
        queue.read(queued.key)


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    path = tmp_path / "said.jsonl"
    said = Said(path)
    assert said.news() == []
    line = encode_event(Begun(path="here")) + "\n"
    path.write_text(line[:7])
    assert said.news() == []
    path.write_text(line + encode_event(JobEnded(error=INTERRUPTED)) + "\n")
    assert [event.type for event in said.news()] == ["begun", "outcome"]
    assert said.run == "here"
    assert said.ended is not None


def test_paths_are_absolute_before_a_job_leaves_and_cores_are_counted_where_it_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GCDBENCH_DATA", "data")
    left = before_leaving(Placement(device=AUTO))
    assert (left.runs, left.data_root) == (tmp_path / "runs", tmp_path / "data")
    assert left.cache is not None
    assert left.cache.is_absolute()
    assert (left.device, left.threads, left.workers) == (AUTO, None, None)
    here = on_arrival(left, {"SLURM_CPUS_PER_TASK": "3"})
    assert (here.device != AUTO, here.threads, here.workers) == (True, 3, 3)
    asked = on_arrival(replace(left, device="cpu", threads=2), {})
    assert (asked.device, asked.threads) == ("cpu", 2)


def test_four_workers_of_one_machine_have_four_gpus() -> None:
    gpus = ("4", "5", "6", "7")
    assert [own_share(gpus, index, 4) for index in range(4)] == [("4",), ("5",), ("6",), ("7",)]
    assert own_share(gpus, 0, 1) == gpus


def test_starts_that_slurm_repeats_by_itself_count_as_attempts_and_the_record_says_so(job: Job) -> None:
    directory = _unfinished_run(job)
    queued = QueuedJob(job=job, engine="slurm", attempt=2, attempts=3)
    file = Queue(job.placement.runs).file(queued.key)
    file.parent.mkdir(parents=True)
    said_path(file, 1).write_text(encode_event(Begun(path=str(directory.path))) + "\n")
    assert not _too_many_starts(file, queued, {"SLURM_RESTART_COUNT": "1"})
    assert directory.record().status == RUNNING
    reason = _too_many_starts(file, queued, {"SLURM_RESTART_COUNT": "2"})
    assert "3 times" in reason
    assert (directory.record().status, directory.record().error) == (FAILED, reason)


def test_options_of_slurm_are_those_of_submitit() -> None:
    submitit = pytest.importorskip("submitit.slurm.slurm")
    config = SlurmConfig(partition="p", memory=1.5, gpus=2, setup="module load x", more=("exclusive", "nice=5"))
    text = submitit._make_sbatch_string(command="true", folder="/tmp", map_count=4, **config.parameters(2))
    for line in ("partition=p", "mem=1536M", "gpus-per-node=2", "array=0-3%2", "nice=5", "exclusive"):
        assert f"#SBATCH --{line}\n" in text
    assert "\nmodule load x\n" in text


SUITE = """
title = "Two"
[presets.smoke]
seeds = [0]
[[columns]]
dataset = "phantom"
protocol = "half"
[[rows]]
method = "kmeans"
executor.slurm = { time = 7, gpus = 1 }
[[rows]]
method = "ss-kmeans"
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(SUITE)
    return path


def test_a_row_has_options_of_its_own_and_the_command_line_wins(suite: Path) -> None:
    from gcdbench.cli.sweep_jobs import make_jobs
    from gcdbench.plugins.manager import get_manager
    from gcdbench.reporting.suites.planning import plan_suite
    from gcdbench.reporting.suites.read import load_suite

    plan = plan_suite(load_suite(suite, get_manager()), "smoke", get_manager(), [])
    jobs = make_jobs(plan, plan.in_state("missing"), Placement(), "slurm", {"time": "9"})
    assert [job.options for job in jobs] == [{"time": "9", "gpus": 1}, {"time": "9"}]
    assert [job.options for job in make_jobs(plan, plan.in_state("missing"), Placement(), "dask", {})] == [{}, {}]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--executor", "slurm"], "the preset must be named"),
        (["--preset", "smoke", "--executor", "slurm", "--executor-set", "partitoin=x"], "did you mean 'partition'"),
        (["--preset", "smoke", "--executor", "slurm", "--executor-set", "time=0"], "'time' must be at least 1"),
        (["--preset", "smoke", "--executor-set", "time=1"], "has no option 'time'"),
        (["--preset", "smoke", "--submit"], "--submit is not possible"),
        (["--preset", "smoke", "--executor", "dask", "--submit"], "--submit is not possible"),
        (["--preset", "smoke", "--executor", "dask", "--device", "cuda"], "no worker of Dask has a GPU"),
    ],
)
def test_what_cannot_be_sent_is_refused_in_a_sentence(
    cli: Callable[..., Result],
    suite: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    result = cli("sweep", suite, *arguments, "--runs", tmp_path / "runs")
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert not (tmp_path / "runs").exists()


def test_without_slurm_a_sweep_says_so_before_anything_is_queued(
    cli: Callable[..., Result], suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = cli("sweep", suite, "--preset", "smoke", "--executor", "slurm", "--runs", tmp_path / "runs")
    assert result.exit_code == 2
    assert "'sbatch' is not on this machine" in result.stderr
    assert not (tmp_path / "runs").exists()


def test_status_shows_jobs_that_have_not_begun(
    cli: Callable[..., Result], job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "squeue").write_text("#!/bin/sh\necho '7_0 PENDING'\n")
    (programs / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    queue = Queue(job.placement.runs)
    for seed, name in enumerate(("7_0", "7_1")):
        queue.write(
            QueuedJob(job=replace(job, request=replace(job.request, seed=seed)), engine="slurm", engine_job=name)
        )
    shown = json.loads(cli("status", "--json", "--runs", job.placement.runs).stdout)
    assert {entry["seed"]: entry["status"] for entry in shown} == {0: "queued", 1: "lost"}
    assert "1 lost, 1 queued" in cli("status", "--runs", job.placement.runs).stdout
    # A run that was interrupted and whose next attempt is queued has one line, which tells both.
    directory = _unfinished_run(job)
    said_path(queue.file(request_key(job.request)), 1).write_text(encode_event(Begun(path=str(directory.path))) + "\n")
    shown = {entry["seed"]: entry for entry in json.loads(cli("status", "--json", "--runs", job.placement.runs).stdout)}
    assert len(shown) == 2
    assert shown[0]["status"] != "queued"
    assert (shown[0]["job_status"], shown[0]["engine_job"]) == ("queued", "7_0")
    assert "queued: slurm job 7_0, attempt 1 of 1" in cli("status", "--runs", job.placement.runs).stdout


def test_an_executor_without_options_takes_none() -> None:
    from gcdbench.plugins.manager import get_manager
    from gcdbench.runs.executors.making import make_executor

    with pytest.raises(ConfigError, match="has no option 'x'"):
        make_executor(get_manager().get("executors", "inline"), {"x": "1"})
