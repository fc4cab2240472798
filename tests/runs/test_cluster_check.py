"""What ``doctor --cluster`` makes of the answers of workers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gcdbench.runs.executors.cluster_check import check_cluster
from gcdbench.runs.executors.probe import TOKEN, Probed, parse_probed, probe
from gcdbench.runs.leases import MARK, lock_mode

Change = Callable[[Probed], Probed]


def answers(*changes: Change) -> Callable[[Path], list[Probed]]:
    """Workers that differ from this host in the given ways; each truly looks at the store."""
    return lambda folder: [change(probe(folder)) for change in changes]


def elsewhere(found: Probed) -> Probed:
    return replace(found, host="another")


def levels(runs: Path, *changes: Change) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for level, message in check_cluster(runs, "slurm", answers(*changes)):
        found.setdefault(message.partition(":")[0].partition(" ")[0], []).append(level)
    return found


def test_a_lock_that_other_hosts_see_makes_the_store_shared(tmp_path: Path) -> None:
    found = levels(tmp_path / "runs", elsewhere)
    assert {level for some in found.values() for level in some} == {"ok"}
    assert (tmp_path / "runs" / MARK).read_text() == "shared\n"
    assert not list((tmp_path / "runs" / ".queue").iterdir()), "the probe leaves something behind"


def test_a_lock_that_other_hosts_do_not_see_makes_it_a_lease(tmp_path: Path) -> None:
    found = levels(tmp_path / "runs", elsewhere, lambda worker: replace(elsewhere(worker), lock=False))
    assert found["locks"] == ["warning"]
    assert lock_mode(tmp_path / "runs") == "lease"


def test_workers_on_this_host_say_nothing_about_others(tmp_path: Path) -> None:
    assert levels(tmp_path / "runs", lambda worker: worker)["locks"] == ["warning"]
    assert not (tmp_path / "runs" / MARK).exists()


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("store", lambda worker: replace(worker, token="")),
        ("store", lambda worker: replace(worker, writes=False)),
        ("versions", lambda worker: replace(worker, versions={**worker.versions, "torch": "0.1"})),
        ("versions", lambda worker: replace(worker, versions={})),
        ("weights", lambda worker: replace(worker, weights=dict.fromkeys(worker.weights, "0"))),
    ],
)
def test_what_would_spoil_a_sweep_is_a_problem(tmp_path: Path, what: str, change: Change) -> None:
    found = levels(tmp_path / "runs", elsewhere, lambda worker: change(elsewhere(worker)))
    assert "problem" in found[what]


def test_clocks_that_differ_are_said(tmp_path: Path) -> None:
    late = levels(tmp_path / "runs", lambda worker: replace(elsewhere(worker), clock=time.time() + 500))
    assert late["clocks"] == ["warning"]


def test_a_cluster_that_does_not_answer_leaves_the_store_as_it_is(tmp_path: Path) -> None:
    assert levels(tmp_path / "runs")["slurm"] == ["warning"]
    assert not (tmp_path / "runs" / MARK).exists()


def test_only_what_a_probe_prints_is_an_answer(tmp_path: Path) -> None:
    (tmp_path / TOKEN).write_text("x")
    assert parse_probed("srun: something else") is None
    assert parse_probed('{"host": 3}') is None
