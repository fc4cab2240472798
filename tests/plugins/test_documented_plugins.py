"""The plugins in the documents register as they are written there, and do what they are said to do."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
import torch

from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.suites.read import load_suite
from gcdbench.runs.execution import Execution
from gcdbench.runs.executors.base import Job
from gcdbench.runs.executors.making import make_executor
from gcdbench.runs.placement import Placement
from gcdbench.runs.plan import make_plan
from gcdbench.runs.request import Request
from gcdbench.runs.runner import execute

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


def test_the_dataset_and_the_backbone_are_what_they_are_said_to_be(documented) -> None:
    source = documented("my_dataset").get("datasets", "colours").load()(None)
    images = [source.decode(source.raw(index)) for index in range(len(source))]
    assert {image.shape for image in images} == {(24, 24, 3)}
    assert np.bincount(source.labels).tolist() == [12, 12, 12, 12]
    # Class 0 is red, class 2 blue: keys, labels and content belong together.
    assert images[0][..., 0].mean() > 190 > 100 > images[0][..., 2].mean()
    assert images[2][..., 2].mean() > 190 > 100 > images[2][..., 0].mean()
    spec = documented("my_backbone").get("backbones", "tiny-convolutions")
    first, second = spec.load()(None), spec.load()(None)
    pixels = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    out = first.tail(first.prefix(pixels))
    assert out.shape == (2, 32, 4, 4)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_the_watcher_hears_of_every_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (PAGES / "observer.md").read_text()
    [source] = re.findall(r"^```python\n(# my_watch/plugin\.py\n.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "watch.py").write_text(source)
    manager = PluginManager(points=[], files=[tmp_path / "watch.py"])
    assert all(record.ok and not record.notes for record in manager.records())
    request = Request(
        method="simgcd",
        dataset="phantom",
        preset="smoke",
        overrides={"image_size": 32, "epochs": 1},
        dataset_options={"n_per_class": "6"},
    )
    placement = Placement(runs=tmp_path / "runs", workers=0)
    execute(Execution(plan=make_plan(request, manager), placement=placement, manager=manager))
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 2
    assert "simgcd on phantom" in told[0]
    assert 0 <= float(told[1].split()[-1]) <= 100


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
