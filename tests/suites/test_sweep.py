"""A sweep in real processes: what is missing runs, one failure stops nothing, Ctrl-C ends cleanly and it goes on."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import psutil
import pytest
from click.testing import CliRunner

from gcdbench.cli.sweep import command as sweep_command
from gcdbench.cli.table import command as table_command
from gcdbench.core.errors import ConfigError
from gcdbench.plugins.manager import get_manager
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.index import load_runs

PLUGIN = '''
import os, time
import numpy as np
from gcdbench.plugins import MethodSpec, hookimpl
from gcdbench.training.method import Prediction


class Counting:
    """Clusters by id; sleeps or fails where the environment says so."""

    def __init__(self, config, task, ctx):
        self.k, self.seed = task.k, ctx.seed

    def fit(self, data):
        print(self.seed)  # valid JSON on the stream that a worker's events come by
        if os.environ.get("TOY_FAILS") == str(self.seed):
            raise ValueError("toy failure")
        if os.environ.get("TOY_SLEEPS"):
            time.sleep(float(os.environ["TOY_SLEEPS"]))

    def predict(self, images):
        return Prediction(ids=images.ids, cluster=images.ids % self.k, k_hat=self.k, anchored=False)

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


@hookimpl
def gcdbench_methods():
    return [MethodSpec(name="toy", api=2, factory="gcdbench_plugin_toy:Counting", needs_backbone=False)]
'''
SUITE = """
title = "Toy"
[presets.smoke]
seeds = [0, 1, 2]
stand_in = "always"
[[columns]]
dataset = "kvasir"
title = "Kvasir"
[[rows]]
method = "toy"
"""


@pytest.fixture
def sweep(tmp_path):
    """Runs ``gcdbench sweep`` in a process of its own; returns the process or its result."""
    (tmp_path / "toy.py").write_text(PLUGIN)
    (tmp_path / "toy.toml").write_text(SUITE)
    environment = os.environ | {
        "GCDBENCH_CACHE": str(tmp_path / "cache"),
        "GCDBENCH_PLUGINS": str(tmp_path / "toy.py"),
        "OMP_NUM_THREADS": "1",
    }

    def run(*arguments, wait=True, **variables):
        command = [sys.executable, "-m", "gcdbench", "sweep", str(tmp_path / "toy.toml"), "--preset", "smoke"]
        command += ["--runs", str(tmp_path / "runs"), *arguments]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment | variables
        )
        if not wait:
            return process
        out, err = process.communicate(timeout=300)
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    run.runs = tmp_path / "runs"
    return run


def wait_for_running(runs, count):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and sum(e.status == "running" for e in load_runs(runs)) < count:
        time.sleep(0.3)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The same in this process, with the inline executor: one import of everything instead of ten."""
    (tmp_path / "toy.py").write_text(PLUGIN)
    (tmp_path / "toy.toml").write_text(SUITE)
    monkeypatch.setenv("GCDBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GCDBENCH_PLUGINS", str(tmp_path / "toy.py"))
    get_manager.cache_clear()

    def run(command, *arguments):
        return CliRunner().invoke(command, [str(tmp_path / "toy.toml"), "--runs", str(tmp_path / "runs"), *arguments])

    run.runs = tmp_path / "runs"
    yield run
    get_manager.cache_clear()


def test_one_failure_stops_nothing_and_is_tried_again(here, monkeypatch):
    inline = ("--preset", "smoke", "--executor", "inline")
    dry = here(sweep_command, *inline, "--dry-run", "--json")
    assert [run["state"] for run in json.loads(dry.stdout)["runs"]] == ["missing"] * 3
    assert not here.runs.exists()

    monkeypatch.setenv("TOY_FAILS", "1")
    first = here(sweep_command, *inline)
    assert first.exit_code == 1
    assert "toy failure" in first.stderr
    assert "2 of 3 runs are done, 1 failed" in first.stdout
    assert re.search(r"^2 runs in \d+ s\.$", first.stdout, re.MULTILINE)  # no share of steps: it trains nothing
    assert sorted(e.status for e in load_runs(here.runs)) == ["done", "done", "failed"]

    monkeypatch.delenv("TOY_FAILS")
    second = here(sweep_command, *inline)
    assert second.exit_code == 0, second.output
    assert second.stderr.count("started") == 1
    assert [e.status for e in load_runs(here.runs)] == ["done"] * 3

    third = here(sweep_command, *inline)
    assert "3 done, 0 missing" in third.stdout
    assert "started" not in third.stderr

    table = here(table_command, "--format", "json")
    (entry,) = [e for e in json.loads(table.stdout)["entries"] if e["score"] == "all"]
    assert entry["n"] == 3
    assert entry["stand_in_for"] == ["Kvasir"]


def test_a_dry_run_says_once_why_runs_cannot_be_done(here, monkeypatch, tmp_path):
    monkeypatch.delenv("GCDBENCH_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    plan = here(sweep_command, "--preset", "smoke", "--stand-in", "never", "--dry-run")
    assert plan.exit_code == 0, plan.output
    assert plan.stdout.count("is not on this machine") == 1
    assert plan.stdout.startswith("3 runs cannot be done here: Dataset 'kvasir'")
    assert plan.stdout.count("Hint: Set GCDBENCH_DATA") == 1
    told = json.loads(here(sweep_command, "--preset", "smoke", "--stand-in", "never", "--dry-run", "--json").stdout)
    assert all(run["hint"].startswith("Set GCDBENCH_DATA") for run in told["runs"])


@pytest.mark.parametrize("executor", ["process", "inline"])
def test_a_gpu_that_is_not_there_is_one_sentence_before_anything_is_queued(here, monkeypatch, executor):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    result = here(sweep_command, "--preset", "smoke", "--device", "cuda", "--executor", executor)
    assert isinstance(result.exception, ConfigError)
    assert "there is no GPU here" in result.exception.message
    assert "started" not in result.stderr
    assert not here.runs.exists()


@pytest.mark.slow
def test_a_killed_parent_leaves_interrupted_runs_and_no_worker(sweep):
    process = sweep("--parallel", "2", wait=False, TOY_SLEEPS="60")
    wait_for_running(sweep.runs, 2)
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 2
    process.kill()
    process.communicate(timeout=60)
    _, alive = psutil.wait_procs(children, timeout=60)
    assert not alive
    assert {RunDirectory(e.path).record().status for e in load_runs(sweep.runs)} == {"interrupted"}

    again = sweep()
    assert again.returncode == 0, again.stderr
    assert [e.status for e in load_runs(sweep.runs)] == ["done"] * 3


@pytest.mark.slow
def test_interrupting_leaves_nothing_behind_and_the_same_command_continues(sweep):
    process = sweep("--parallel", "2", wait=False, TOY_SLEEPS="60")
    wait_for_running(sweep.runs, 2)
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 2
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "The same command continues" in err
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
    assert {e.status for e in load_runs(sweep.runs)} == {"interrupted"}

    again = sweep()
    assert again.returncode == 0, again.stderr
    assert [e.status for e in load_runs(sweep.runs)] == ["done"] * 3
