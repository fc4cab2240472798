"""What a worker of a queued job reads, refuses and counts, on the machine where it arrives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import gcdbench
from gcdbench.core.errors import StoreError
from gcdbench.runs.events import Begun, JobEnded, encode_event
from gcdbench.runs.executors.arrival import AUTO, before_leaving, on_arrival
from gcdbench.runs.executors.base import Job
from gcdbench.runs.executors.dask_task import own_share
from gcdbench.runs.executors.queue import INTERRUPTED, Queue, QueuedJob, Said, request_key, said_path
from gcdbench.runs.executors.queue_worker import _too_many_starts
from gcdbench.runs.executors.slurm import SlurmConfig
from gcdbench.runs.placement import Placement
from gcdbench.runs.record import FAILED, RUNNING
from tests.runs.scripted_engine import unfinished_run


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
    directory = unfinished_run(job)
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
