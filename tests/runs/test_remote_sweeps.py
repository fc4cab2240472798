"""Sweeps through an engine: options of rows, what is refused before anything is queued, and what status shows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result

from gcdbench.core.errors import ConfigError
from gcdbench.runs.events import Begun, encode_event
from gcdbench.runs.executors.arrival import AUTO, before_leaving
from gcdbench.runs.executors.base import Job
from gcdbench.runs.executors.queue import Queue, QueuedJob, request_key, said_path
from gcdbench.runs.executors.wire import decode_job, encode_job
from gcdbench.runs.placement import Placement
from gcdbench.runs.request import Request
from tests.runs.scripted_engine import unfinished_run


def test_what_the_user_wants_to_observe_travels_with_the_jobs(tmp_path: Path) -> None:
    asked = Placement(runs=tmp_path, device=AUTO, disk_budget="6GB", observe=("tensorboard",))
    placement = before_leaving(asked)
    job = decode_job(encode_job(Job(request=Request(method="kmeans", dataset="phantom"), placement=placement)))
    assert (job.placement.disk_budget, job.placement.observe) == ("6GB", ("tensorboard",))


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
    directory = unfinished_run(job)
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
