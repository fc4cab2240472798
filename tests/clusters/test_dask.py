"""Sweeps through a real Dask cluster in a namespace with ``lo`` alone: what a lost worker did is resumed elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.record import INTERRUPTED
from tests.clusters.namespaces import Namespace, namespace, require_namespaces, require_only_loopback
from tests.clusters.slurm_cluster import wait_for
from tests.clusters.sweeps import finished, gcdbench, in_training, write_suite

pytestmark = pytest.mark.cluster
ADDRESS = "tcp://127.0.0.1:8786"
DASK = ("--preset", "smoke", "--executor", "dask")


MEETING = """
import os, pathlib, time
from gcdbench.api import Prediction
from gcdbench.plugins import MethodSpec, hookimpl


class Meeting:
    def __init__(self, config, task, ctx):
        self.k, self.ctx = task.k, ctx

    def fit(self, data):
        here = pathlib.Path(os.environ["GCDBENCH_MEETING"])
        (here / str(self.ctx.seed)).write_text(os.environ.get("CUDA_VISIBLE_DEVICES", "none"))
        until = time.monotonic() + 200
        while len(list(here.iterdir())) < 4:
            assert time.monotonic() < until, "four runs never ran at the same time"
            time.sleep(0.1)

    def predict(self, images):
        return Prediction(ids=images.ids, cluster=images.ids % self.k, k_hat=self.k, anchored=False)


@hookimpl
def gcdbench_methods():
    return [MethodSpec(name="meeting", api=2, factory=__name__ + ":Meeting", needs_backbone=False)]
"""
"""A method whose runs wait for each other, and write down which GPU each of them sees."""


class DaskCluster:
    """A scheduler and its workers, as processes."""

    def __init__(self, space: Namespace, folder: Path) -> None:
        self.space = space
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """A process in the namespace; what it says goes to a file."""
        with (self.folder / f"{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                self.space.command(sys.executable, "-m", *words), stdout=log, stderr=log, cwd=self.folder
            )
        self.processes.append(process)
        return process

    def start_worker(self) -> subprocess.Popen[bytes]:
        """One run at a time."""
        options = ("--nthreads", "1", "--nworkers", "1", "--memory-limit", "0", "--no-dashboard", "--host", "127.0.0.1")
        return self.start("distributed.cli.dask_worker", ADDRESS, *options)


def kill_with_children(process: subprocess.Popen[bytes], *, spare_runs: bool = False) -> None:
    """SIGKILL to a worker, its nanny and, unless spared, the runs they started."""
    try:
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for one in family:
        try:
            if not (spare_runs and "queue_worker" in " ".join(one.cmdline())):
                one.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait(timeout=10)


@contextmanager
def dask_cluster(folder: Path) -> Iterator[DaskCluster]:
    """A scheduler without workers."""
    with namespace("dask") as space:
        require_only_loopback(space)
        cluster = DaskCluster(space, folder)
        try:
            cluster.start("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--no-dashboard")
            yield cluster
        finally:
            for process in cluster.processes:
                kill_with_children(process)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DaskCluster]:
    pytest.importorskip("distributed")
    require_namespaces()
    (tmp_path / "dask").mkdir()
    with dask_cluster(tmp_path / "dask") as found:
        yield found


@pytest.mark.parametrize("spare_runs", [False, True], ids=["with its runs", "alone"])
def test_a_worker_dies_in_the_middle_of_training_and_its_run_goes_on_elsewhere(
    cluster: DaskCluster, tmp_path: Path, undisturbed: dict[int, dict[str, str]], spare_runs: bool
) -> None:
    write_suite(tmp_path)
    runs = tmp_path / "runs"
    doomed, _ = cluster.start_worker(), cluster.start_worker()
    options = ("--executor-set", f"address={ADDRESS}", "--threads", 1, "--runs", runs)
    log = tmp_path / "sweep.log"
    with log.open("wb") as output:
        words = gcdbench("sweep", "six.toml", *DASK, *options)
        sweep = subprocess.Popen(cluster.space.command(*words), cwd=tmp_path, stdout=output, stderr=output)
    wait_for(lambda: len(in_training(runs)) == 2 or sweep.poll() is not None, "a run in training on each worker", 240)
    kill_with_children(doomed, spare_runs=spare_runs)
    assert sweep.wait(timeout=600) == 0, log.read_text()
    assert finished(runs) == undisturbed
    assert any(RunDirectory(path.parent).record().resumed for path in runs.glob("*/*/*/run.json"))


def test_without_an_address_the_machine_is_the_cluster_and_ctrl_c_leaves_runs_that_can_be_resumed(
    tmp_path: Path,
) -> None:
    pytest.importorskip("distributed")
    require_namespaces()
    write_suite(tmp_path, epochs=2000)
    with namespace("dask") as space:
        words = gcdbench("sweep", "six.toml", *DASK, "-j", 1, "--seeds", 0, "--runs", "runs")
        # A shell lets what it starts in the background ignore Ctrl-C, and so this test perhaps.
        listens = ("env", "--default-signal=INT")
        sweep = subprocess.Popen(space.command(*listens, *words), cwd=tmp_path, stderr=subprocess.PIPE)
        try:
            wait_for(lambda: in_training(tmp_path / "runs") or sweep.poll() is not None, "a run in training", 240)
            family = psutil.Process(sweep.pid).children(recursive=True)
            listening = {
                connection.laddr.ip
                for process in (psutil.Process(sweep.pid), *family)
                for connection in process.net_connections("tcp")
                if connection.status == psutil.CONN_LISTEN
            }
            sweep.send_signal(signal.SIGINT)
            sweep.wait(timeout=90)
        finally:
            sweep.kill()
    assert sweep.returncode == 130
    [path] = (tmp_path / "runs").glob("*/*/*/run.json")
    assert RunDirectory(path.parent).status() == INTERRUPTED
    _, left = psutil.wait_procs(family, timeout=60)  # on a busy machine the last of them need a moment
    assert not [process for process in left if process.status() != psutil.STATUS_ZOMBIE]
    assert listening <= {"127.0.0.1", "::1"}, os.linesep.join(listening)


def test_four_runs_at_a_time_see_four_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    require_namespaces()
    (tmp_path / "meeting.py").write_text(MEETING)
    (tmp_path / "met").mkdir()
    write_suite(tmp_path)
    text = (tmp_path / "six.toml").read_text().replace("simgcd", "meeting")
    (tmp_path / "four.toml").write_text(text)
    monkeypatch.setenv("GCDBENCH_PLUGINS", str(tmp_path / "meeting.py"))
    monkeypatch.setenv("GCDBENCH_MEETING", str(tmp_path / "met"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    with namespace("dask") as space:
        words = gcdbench("sweep", "four.toml", *DASK, "-j", 4, "--seeds", "0-3", "--device", "cpu", "--runs", "runs")
        done = subprocess.run(
            space.command(*words), cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
        )
    assert done.returncode == 0, done.stderr
    assert sorted(path.read_text() for path in (tmp_path / "met").iterdir()) == ["4", "5", "6", "7"]
