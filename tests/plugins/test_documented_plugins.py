"""The plugins in the documents register as they are written there, and do what they are said to do."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.suites.read import load_suite
from gcdbench.runs.executors.base import Job
from gcdbench.runs.executors.making import make_executor
from gcdbench.runs.placement import Placement
from gcdbench.runs.plan import make_plan
from gcdbench.runs.request import Request

PAGES = Path(__file__).resolve().parents[2] / "docs" / "write"
ELSEWHERE = {"observer.md"}
"""Its observers need services that are not installed; tests/runs/test_observers.py has stand-ins for them."""
DOCS = [page for page in sorted(PAGES.glob("*.md")) if page.name not in ELSEWHERE]
BLOCKS = {
    found["package"]: found["source"]
    for text in (page.read_text() for page in DOCS)
    for found in re.finditer(
        r"^```python\n(?P<source># (?P<package>\w+)/plugin\.py\n.*?)^```", text, re.MULTILINE | re.DOTALL
    )
}


@pytest.fixture
def documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Install one of the documented packages; returns a manager that knows it."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(package: str) -> PluginManager:
        (tmp_path / package).mkdir(exist_ok=True)
        (tmp_path / package / "__init__.py").touch()
        (tmp_path / package / "plugin.py").write_text(BLOCKS[package])
        manager = PluginManager(points=[EntryPoint(name="x", value=f"{package}.plugin", group="gcdbench")])
        assert all(record.ok and not record.notes for record in manager.records())
        return manager

    yield install
    for name in [name for name in sys.modules if name.partition(".")[0] in BLOCKS]:
        del sys.modules[name]


@pytest.mark.parametrize("package", BLOCKS)
def test_it_registers_without_a_note(documented, package: str) -> None:
    documented(package)


def test_the_metric_counts_clusters(documented) -> None:
    spec = documented("my_metric").get("metrics", "fragments")
    scores = spec.load()(np.array([0, 0, 1, 1]), np.array([3, 4, 3, 3]), np.array([True, False]), False)
    assert scores == {"fragments": 1.5}
    assert [score.key for score in spec.describe()] == ["fragments"]


def test_the_preset_and_the_suite_can_be_used(documented, tmp_path: Path) -> None:
    plan = make_plan(Request(method="simgcd", dataset="phantom", preset="tiny"), documented("my_preset"))
    assert (plan.settings.image_size, plan.settings.views, plan.training.epochs) == (64, "bank:4", 5)
    (tmp_path / "my_study" / "study").mkdir(parents=True)
    (tmp_path / "my_study" / "study" / "table.toml").write_text(
        'title = "T"\n[presets.laptop]\n[[columns]]\ndataset = "phantom"\n[[rows]]\nmethod = "simgcd"\n'
    )
    assert load_suite("table", documented("my_study")).title == "T"


def test_the_executor_does_a_run(documented, tmp_path: Path) -> None:
    executor = documented("my_executor").get("executors", "pool").load()()
    options = {"n_per_class": "6"}
    request = Request(
        method="pixels-kmeans", dataset="phantom", preset="smoke", overrides={"image_size": 32}, dataset_options=options
    )
    jobs = [Job(request=request, placement=Placement(runs=tmp_path / "runs", workers=0)) for request in (request,)]
    heard = []
    [outcome] = executor.run(jobs, parallel=1, listener=lambda job, event: heard.append((job, event.type)))
    assert not outcome.error
    assert (Path(outcome.path) / "scores.json").is_file()
    assert heard == [(jobs[0], "outcome")]


def test_the_executor_for_other_hosts_brings_a_run_there_and_its_events_back(documented, tmp_path: Path) -> None:
    spec = documented("ssh_executor").get("executors", "ssh")
    # A shell is as good as a host: it gets one text and runs it.
    options = {"command": "sh,-c", "python": sys.executable}
    request = Request(
        method="pixels-kmeans",
        dataset="phantom",
        preset="smoke",
        overrides={"image_size": 32},
        dataset_options={"n_per_class": "6"},
    )
    placement = Placement(runs=tmp_path / "runs", workers=0, device="auto")
    jobs = [Job(request=replace(request, seed=seed), placement=placement) for seed in range(2)]
    heard = []
    outcomes = make_executor(spec, options).run(jobs, parallel=0, listener=lambda job, event: heard.append(event.type))
    assert [outcome.error for outcome in outcomes] == ["", ""]
    assert len({outcome.path for outcome in outcomes}) == 2
    assert heard.count("outcome") == 2
    [lost] = make_executor(spec, {"command": "false"}).run(jobs[:1], parallel=0, listener=lambda job, event: None)
    assert lost.error
