"""Trained methods through the runner: a hostile loss, an interruption, a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gcdbench.core.errors import TrainingError
from gcdbench.models.predict import load_model
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.events import Resumed
from gcdbench.runs.execution import Execution
from gcdbench.runs.placement import Placement
from gcdbench.runs.plan import make_plan
from gcdbench.runs.record import DONE, FAILED
from gcdbench.runs.request import Request
from gcdbench.runs.runner import execute
from gcdbench.testing.tiny import TinyBackbone
from gcdbench.training import checkpoint

PLUGIN = """
from gcdbench.api import SimGCD
from gcdbench.plugins import BackboneSpec, MethodSpec, hookimpl
from gcdbench.testing.tiny import TinyBackbone, shrink


def load_tiny(weights):
    return TinyBackbone()


class Small(shrink(SimGCD)):
    stops_at = None

    def losses(self, batch):
        if batch.step == self.stops_at:
            raise KeyboardInterrupt
        return super().losses(batch)


class Hostile(Small):
    def losses(self, batch):
        return {**super().losses(batch), "poison": batch.logits.mean() * (float("nan") if batch.step == 3 else 0.0)}


@hookimpl
def gcdbench_methods():
    config = "gcdbench.api:SimGCDConfig"
    return [
        MethodSpec(name="small", factory=f"{__name__}:Small", config=config, trained=True),
        MethodSpec(name="hostile", factory=f"{__name__}:Hostile", config=config, trained=True),
    ]


@hookimpl
def gcdbench_backbones():
    return [BackboneSpec(name="tiny", factory=f"{__name__}:load_tiny")]
"""


@pytest.fixture
def manager(tmp_path: Path) -> PluginManager:
    file = tmp_path / "plugin_for_whole_runs.py"
    file.write_text(PLUGIN)
    return PluginManager(points=[], files=[file])


def run(manager: PluginManager, runs: Path, method: str = "small", views: str = "bank:2") -> Any:
    request = Request(
        method=method,
        dataset="phantom",
        overrides={"backbone": "tiny", "image_size": "32", "views": views, "epochs": "3", "batch_size": "16"},
        dataset_options={"n_per_class": "8"},
    )
    return execute(
        Execution(plan=make_plan(request, manager), placement=Placement(runs=runs, workers=1), manager=manager)
    )


def hashes(directory: RunDirectory) -> dict[str, str]:
    return {name: entry.sha256 for name, entry in directory.record().predictions.items()}


def test_a_poisoned_loss_fails_the_run_with_step_and_values(manager: PluginManager, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"step 3 .*'poison' is not finite"):
        run(manager, tmp_path / "runs", "hostile")
    [record] = (tmp_path / "runs").glob("*/*/*/run.json")
    directory = RunDirectory(record.parent)
    assert directory.status() == FAILED
    said = directory.record().error
    assert "step 3" in said
    assert "poison = nan" in said
    assert "cls_u = " in said
    state = checkpoint.read_state(directory.path / "checkpoint" / checkpoint.FAILED)
    assert state["total_steps"] == 3


@pytest.mark.parametrize("views", ["online", "bank:2", "bank8:2", "rolling:2"])
def test_an_interrupted_run_goes_on_and_stores_what_the_whole_one_does(
    manager: PluginManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: str
) -> None:
    """Of a rolling bank the whole run has thrown the views away that the other one began with."""
    whole = run(manager, tmp_path / "whole", views=views)
    monkeypatch.setenv("GCDBENCH_CHECKPOINT_SECONDS", "0")
    small = manager.get("methods", "small").load()
    with monkeypatch.context() as patch:
        patch.setattr(small, "stops_at", 5)
        with pytest.raises(KeyboardInterrupt):
            run(manager, tmp_path / "broken", views=views)
    resumed = run(manager, tmp_path / "broken", views=views)
    assert resumed.directory.status() == DONE
    assert hashes(resumed.directory) == hashes(whole.directory)
    assert whole.record.seconds["fit"] > 0
    assert resumed.record.seconds == {}  # only its last part was timed
    assert [event.total_steps for event in resumed.record.events if isinstance(event, Resumed)] == [5]


def test_the_run_directory_holds_a_model_that_loads(manager: PluginManager, tmp_path: Path) -> None:
    result = run(manager, tmp_path / "runs")
    model = load_model(result.directory.path, load_backbone=TinyBackbone)
    assert model.card.image_size == 32
    assert model.card.k == 8
    assert model.card.names.classes == tuple(result.directory.record().split.old_classes)
