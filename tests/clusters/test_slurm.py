"""Sweeps through a real SLURM of two nodes: what is lost is resumed, and ends with the bits of an undisturbed run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.events import Resumed
from gcdbench.runs.record import DONE, FAILED, INTERRUPTED
from tests.clusters.namespaces import listeners, require_namespaces, require_only_loopback
from tests.clusters.slurm_cluster import PROGRAMS, SlurmCluster, slurm_cluster, wait_for
from tests.clusters.sweeps import finished, gcdbench, in_training, write_suite

pytestmark = pytest.mark.cluster
SLURM = ("--preset", "smoke", "--executor", "slurm", "--executor-set", "poll=1")
LONG = 2000
"""Epochs of a run that does not end before something happens to it."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """Two nodes, one processor each."""
    require_namespaces(PROGRAMS)
    with slurm_cluster(tmp_path_factory.mktemp("slurm")) as found:
        require_only_loopback(found.space)
        # The namespace is where they listen: the controller and two nodes.
        assert len(listeners(*found.space.command())) >= 3
        yield found


def sweep(cluster: SlurmCluster, folder: Path, *more: object, **environment: str) -> subprocess.Popen[bytes]:
    command = gcdbench("sweep", "six.toml", *SLURM, "--runs", "runs", *more)
    return cluster.start_command(*command, cwd=folder, log=folder / "sweep.log", **environment)


def said(folder: Path) -> str:
    return (folder / "sweep.log").read_text()


def only_run(runs: Path) -> RunDirectory:
    [path] = runs.glob("*/*/*/run.json")
    return RunDirectory(path.parent)


def test_a_node_dies_in_the_middle_of_training_and_the_sweep_ends_by_itself(
    cluster: SlurmCluster, tmp_path: Path, undisturbed: dict[int, dict[str, str]]
) -> None:
    write_suite(tmp_path)
    runs = tmp_path / "runs"
    process = sweep(cluster, tmp_path, "--executor-set", "time=10")
    wait_for(lambda: len(in_training(runs)) == 2, "a run in training on each node", 240)
    cluster.kill_node("n2")
    wait_for(lambda: "down" in cluster.call("sinfo", "-h", "-N", "-o", "%T"), "a node that is down", 60)
    cluster.start_node("n2")
    assert process.wait(timeout=900) == 0, said(tmp_path)
    assert finished(runs) == undisturbed
    resumed = [path for path in runs.glob("*/*/*/run.json") if RunDirectory(path.parent).record().resumed]
    assert resumed, "the run of the dead node has begun from nothing"
    assert not list((runs / ".queue").glob("*.json"))


def test_scancel_leaves_an_interrupted_run_that_is_not_sent_again(cluster: SlurmCluster, tmp_path: Path) -> None:
    write_suite(tmp_path, epochs=LONG)
    process = sweep(cluster, tmp_path, "--seeds", 0, "--executor-set", "time=10")
    wait_for(lambda: in_training(tmp_path / "runs"), "a run in training", 240)
    [(job, _, _)] = cluster.queue()
    cluster.call("scancel", job)
    assert process.wait(timeout=120) == 1
    assert "its job was cancelled" in said(tmp_path)
    assert only_run(tmp_path / "runs").status() == INTERRUPTED
    wait_for(lambda: not cluster.queue(), "an empty queue")


def test_a_time_limit_writes_a_checkpoint_and_the_run_goes_on_until_it_is_given_up(
    cluster: SlurmCluster, tmp_path: Path
) -> None:
    write_suite(tmp_path, epochs=LONG)
    limits = ("time=1", "warning=30", "attempts=2")
    options = [word for limit in limits for word in ("--executor-set", limit)]
    # No checkpoint but the one that SLURM's signal asks for.
    process = sweep(cluster, tmp_path, "--seeds", 0, *options, GCDBENCH_CHECKPOINT_SECONDS="10000")
    assert process.wait(timeout=400) == 1, said(tmp_path)
    run = only_run(tmp_path / "runs")
    record = run.record()
    assert record.status == FAILED
    assert "ended its job 2 times" in record.error
    assert (run.path / "checkpoint" / "latest.pt").is_file()
    assert [event.total_steps > 0 for event in record.events if isinstance(event, Resumed)] == [True]


def test_a_job_that_slurm_begins_again_too_often_is_a_failed_run_with_its_reason(
    cluster: SlurmCluster, tmp_path: Path
) -> None:
    write_suite(tmp_path, epochs=LONG)
    process = sweep(cluster, tmp_path, "--seeds", 0, "--executor-set", "time=10", "--executor-set", "attempts=1")
    wait_for(lambda: in_training(tmp_path / "runs"), "a run in training", 240)
    [(job, _, _)] = cluster.queue()
    cluster.call("scontrol", "requeue", job)  # as for a job that makes room for another
    assert process.wait(timeout=300) == 1, said(tmp_path)
    record = only_run(tmp_path / "runs").record()
    assert record.status == FAILED
    assert "the run was begun once" in record.error
    assert record.error in said(tmp_path)
    wait_for(lambda: not cluster.queue(), "an empty queue")


def test_a_time_limit_of_a_job_of_two_nodes_leaves_a_run_that_can_be_resumed(
    cluster: SlurmCluster, tmp_path: Path
) -> None:
    write_suite(tmp_path, epochs=LONG)
    options = ("nodes=2", "time=1", "warning=30", "attempts=1", "setup=export GLOO_SOCKET_IFNAME=lo")
    words = [word for option in options for word in ("--executor-set", option)]
    process = sweep(cluster, tmp_path, "--seeds", 0, *words, GCDBENCH_CHECKPOINT_SECONDS="10000")
    assert process.wait(timeout=240) == 1, said(tmp_path)
    run = only_run(tmp_path / "runs")
    # Not the error of a process that missed the other one.
    assert "before the run was done" in run.record().error
    assert (run.path / "checkpoint" / "latest.pt").is_file()
    wait_for(lambda: not cluster.queue(), "an empty queue")


def test_submitted_and_left_alone_it_is_seen_from_elsewhere_and_continued(
    cluster: SlurmCluster, tmp_path: Path, undisturbed: dict[int, dict[str, str]]
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    write_suite(home)
    store = ("--runs", str(home / "runs"))
    limit = ("--executor-set", "time=10")
    assert sweep(cluster, home, "--seeds", "0-2", "--submit", *limit).wait(timeout=120) == 0, said(home)
    jobs = {job for job, _, _ in cluster.queue()}
    assert len(jobs) == 3

    def status() -> list[str]:
        log = elsewhere / "status.json"
        log.unlink(missing_ok=True)
        command = gcdbench("status", "--json", *store)
        assert cluster.start_command(*command, cwd=elsewhere, log=log).wait(timeout=60) == 0
        return [entry["status"] for entry in json.loads(log.read_text())]

    assert len(status()) == 3
    assert "queued" in status()
    wait_for(lambda: finished(home / "runs"), "a first result", 240)
    shown = elsewhere / "table.txt"
    command = gcdbench("table", home / "six.toml", "--preset", "smoke", *store)
    assert cluster.start_command(*command, cwd=elsewhere, log=shown).wait(timeout=60) == 0
    assert "simgcd" in shown.read_text()
    again = gcdbench("sweep", home / "six.toml", *SLURM, "--seeds", "0-2", *store, *limit)
    watching = cluster.start_command(*again, cwd=elsewhere, log=elsewhere / "sweep.log")
    seen: set[str] = set()
    while watching.poll() is None:
        seen |= {job for job, _, _ in cluster.queue()}
    assert watching.returncode == 0, (elsewhere / "sweep.log").read_text()
    assert seen <= jobs, "a queued job was submitted twice"
    assert finished(home / "runs") == {seed: undisturbed[seed] for seed in (0, 1, 2)}


def test_a_gpu_that_the_cluster_does_not_have_is_refused_before_anything_is_queued(
    cluster: SlurmCluster, tmp_path: Path
) -> None:
    write_suite(tmp_path)
    assert sweep(cluster, tmp_path, "--executor-set", "gpus=1").wait(timeout=60) == 2
    assert "no node of this cluster has one" in said(tmp_path)
    assert sweep(cluster, tmp_path, "--device", "cuda").wait(timeout=60) == 2
    assert "the jobs ask SLURM for no GPU" in said(tmp_path)
    assert not cluster.queue()
    assert not list((tmp_path / "runs").glob(".queue/*"))


def test_a_job_of_two_nodes_is_one_stored_run(cluster: SlurmCluster, tmp_path: Path) -> None:
    write_suite(tmp_path, epochs=2)
    options = ("nodes=2", "time=10", "setup=export GLOO_SOCKET_IFNAME=lo")
    words = [word for option in options for word in ("--executor-set", option)]
    assert sweep(cluster, tmp_path, "--seeds", 0, *words).wait(timeout=240) == 0, said(tmp_path)
    record = only_run(tmp_path / "runs").record()
    assert (record.status, record.world_size) == (DONE, 2)
    assert sweep(cluster, tmp_path, "--seeds", 0, *words).wait(timeout=60) == 0
    assert "1 done, 0 missing" in said(tmp_path)


def test_doctor_says_in_one_page_whether_a_sweep_will_work(cluster: SlurmCluster, tmp_path: Path) -> None:
    log = tmp_path / "doctor.json"
    command = gcdbench("doctor", "--cluster", "--json", "--runs", "runs")
    assert cluster.start_command(*command, cwd=tmp_path, log=log).wait(timeout=180) == 0, log.read_text()
    findings = {entry["message"].partition(":")[0]: entry["level"] for entry in json.loads(log.read_text())}
    assert {findings[name] for name in ("slurm", "clocks", "versions", "weights")} == {"ok"}
    # Both nodes are this host: nothing is known about locks between hosts, and that is said.
    assert findings["locks"] == "warning"


def test_a_full_queue_keeps_the_rest_and_tries_again(tmp_path: Path) -> None:
    require_namespaces(PROGRAMS)
    write_suite(tmp_path, epochs=2)
    with slurm_cluster(tmp_path / "slurm", max_jobs=4) as small:
        process = sweep(small, tmp_path, "--executor-set", "time=10")
        most = 0
        while process.poll() is None:
            most = max(most, len(small.queue()))
        assert process.returncode == 0, said(tmp_path)
    assert most <= 4
    assert sorted(finished(tmp_path / "runs")) == [0, 1, 2, 3, 4, 5]
    assert said(tmp_path).count("takes no more jobs at the moment") == 1
