"""What a method must keep to, checked where a run would otherwise store something wrong or end in a riddle."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gcdbench.core.errors import ConfigError, GCDBenchError
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.execution import Execution
from gcdbench.runs.placement import Placement
from gcdbench.runs.plan import make_plan
from gcdbench.runs.request import Request
from gcdbench.runs.runner import execute

SOURCE = """
from dataclasses import dataclass

import numpy as np

from gcdbench.api import ParametricMethod, Prediction
from gcdbench.plugins import MethodSpec, hookimpl


{config}


class Mine:
    def __init__(self, config, task, ctx):
        pass

    def fit(self, data):
        pass

    def predict(self, images):
        n = len(images)
        fine = dict(ids=images.ids, cluster=images.ids % 3, k_hat=3, anchored=False)
        return {prediction}


class Trained(ParametricMethod):
    pass


@hookimpl
def gcdbench_methods():
    return [MethodSpec(name="mine", factory=__name__ + ":{factory}", config=__name__ + ":Config",
                       needs_backbone={backbone})]
"""
FROZEN = "@dataclass(frozen=True, kw_only=True)\nclass Config:\n    width: int = 1"


@pytest.fixture
def written(tmp_path: Path):
    """A manager that knows the plugin file with these parts, and the request to run its method."""
    made = []

    def write(config: str = FROZEN, prediction: str = "Prediction(**fine)", factory: str = "Mine") -> PluginManager:
        path = tmp_path / f"plugin{len(made)}_{tmp_path.name}.py"
        made.append(path)
        path.write_text(
            SOURCE.format(config=config, prediction=prediction, factory=factory, backbone=factory == "Trained")
        )
        return PluginManager(points=[], files=[path])

    yield write
    for name in [name for name in sys.modules if tmp_path.name in name]:
        del sys.modules[name]


REQUEST = Request(method="mine", dataset="phantom", preset="smoke", overrides={"image_size": 32})


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("class Config:\n    width = 1", "must be a frozen dataclass"),
        ("@dataclass\nclass Config:\n    width: int = 1", "must be a frozen dataclass"),
        (FROZEN.replace(" = 1", ""), "The setting 'width' of method 'mine' needs a default"),
    ],
)
def test_a_config_that_cannot_be_set_or_trusted_is_refused(written, config: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_plan(REQUEST, written(config))


@pytest.mark.parametrize(("name", "section"), [("lr", "training"), ("image_size", "settings")])
def test_a_setting_that_means_two_things_must_be_said_in_full(written, name: str, section: str) -> None:
    manager = written(FROZEN.replace("width", name))
    with pytest.raises(ConfigError, match=f"write {section}.{name} or config.{name}"):
        make_plan(replace(REQUEST, overrides={name: 7}), manager)
    mine = make_plan(replace(REQUEST, overrides={f"config.{name}": 7}), manager)
    theirs = make_plan(replace(REQUEST, overrides={f"{section}.{name}": 77}), manager)
    assert getattr(mine.config, name) == 7
    assert getattr(getattr(mine, section), name) not in (7, 77)
    assert getattr(theirs.config, name) == 1
    assert getattr(getattr(theirs, section), name) == 77


@pytest.mark.parametrize(
    ("prediction", "said"),
    [
        ("images.ids % 3", "returned ndarray; it must return a Prediction"),
        ("Prediction(**(fine | dict(k_hat=2)))", "has 2 clusters .* used cluster 2"),
        ("Prediction(**fine, confidence=np.full(n, np.nan))", "confidence must be finite numbers, one per image"),
        ("Prediction(**fine, confidence=np.zeros(n - 1))", "confidence must be finite"),
        ("Prediction(**fine, embedding=np.zeros(n))", "embedding must be finite numbers, one row per image"),
        ("Prediction(**fine, embedding=np.full((n, 2), np.inf))", "embedding must be finite"),
    ],
)
def test_a_prediction_that_cannot_be_scored_or_drawn_is_refused(
    written, tmp_path: Path, prediction: str, said: str
) -> None:
    manager = written(prediction=prediction)
    with pytest.raises(GCDBenchError, match=said):
        execute(
            Execution(
                plan=make_plan(REQUEST, manager),
                placement=Placement(runs=tmp_path / "runs", workers=0),
                manager=manager,
            )
        )


def test_a_sound_prediction_is_stored(written, tmp_path: Path) -> None:
    manager = written(prediction="Prediction(**fine, confidence=np.ones(n), embedding=np.ones((n, 2)))")
    result = execute(
        Execution(
            plan=make_plan(REQUEST, manager), placement=Placement(runs=tmp_path / "runs", workers=0), manager=manager
        )
    )
    assert result.scores.sets["transductive"].n > 0


def test_a_trained_method_that_does_not_say_so_is_told_what_to_add(written, tmp_path: Path) -> None:
    manager = written(factory="Trained")
    with pytest.raises(ConfigError, match="does not say so") as caught:
        execute(
            Execution(
                plan=make_plan(REQUEST, manager),
                placement=Placement(runs=tmp_path / "runs", workers=0),
                manager=manager,
            )
        )
    assert "trained=True" in str(caught.value.hint)
