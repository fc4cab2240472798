"""Sweeps through a real SLURM of two nodes: what is lost is resumed, and ends with the bits of an undisturbed run."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.events import Resumed
from gcdbench.runs.record import FAILED, INTERRUPTED
from tests.clusters.namespaces import require_namespaces, require_only_loopback
from tests.clusters.slurm_cluster import PROGRAMS, SlurmCluster, slurm_cluster, wait_for
from tests.clusters.sweeps import finished, gcdbench, in_training, write_suite

pytestmark = pytest.mark.cluster
SLURM = ("--preset", "smoke", "--executor", "slurm", "--executor-set", "poll=1", "--executor-set", "time=10")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SlurmCluster]:
    """Two nodes, one processor each."""
    require_namespaces(PROGRAMS)
    with slurm_cluster(tmp_path / "slurm") as found:
        require_only_loopback(found.space)
        yield found


def sweep(cluster: SlurmCluster, folder: Path, *more: object) -> subprocess.Popen[bytes]:
    command = gcdbench("sweep", "six.toml", *SLURM, "--runs", "runs", *more)
    return cluster.start_command(*command, cwd=folder, log=folder / "sweep.log")


def only_run(runs: Path) -> RunDirectory:
    [path] = runs.glob("*/*/*/run.json")
    return RunDirectory(path.parent)


def test_a_node_dies_in_the_middle_of_training_and_the_sweep_ends_by_itself(
    cluster: SlurmCluster, tmp_path: Path, undisturbed: dict[int, dict[str, str]]
) -> None:
    write_suite(tmp_path)
    runs = tmp_path / "runs"
    process = sweep(cluster, tmp_path)
    wait_for(lambda: len(in_training(runs)) == 2, "a run in training on each node", 240)
    cluster.kill_node("n2")
    wait_for(
        lambda: (
            any(state == "down" for state in cluster.call("sinfo", "-h", "-N", "-o", "%T").split("\n"))
            or "down" in cluster.call("sinfo", "-h", "-N", "-o", "%T")
        ),
        "a node that is down",
        60,
    )
    cluster.start_node("n2")
    assert process.wait(timeout=900) == 0, (tmp_path / "sweep.log").read_text()
    assert finished(runs) == undisturbed
    resumed = [path for path in runs.glob("*/*/*/run.json") if RunDirectory(path.parent).record().resumed]
    assert resumed, "the run of the dead node has begun from nothing"
    assert not list((runs / ".queue").glob("*.json"))
