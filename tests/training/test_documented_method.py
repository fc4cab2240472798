"""The worked example of docs/write/method.md is a whole method: it loads as a plugin, trains and predicts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcdbench.plugins.manager import PluginManager
from gcdbench.testing.tiny import shrink, tiny_context, tiny_task
from gcdbench.training.parametric import ParametricMethod

PAGE = Path(__file__).parents[2] / "docs" / "write" / "method.md"


@pytest.fixture(scope="module")
def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


@pytest.fixture(scope="module")
def manager(blocks: list[str], tmp_path_factory: pytest.TempPathFactory) -> PluginManager:
    folder = tmp_path_factory.mktemp("plugin")
    files = [folder / "agree.py", folder / "pseudo.py"]
    for file, block in zip(files, blocks, strict=False):
        file.write_text(block)
    return PluginManager(points=[], files=files)


def test_one_more_loss_for_simgcd_is_about_ten_lines(manager: PluginManager, blocks: list[str]) -> None:
    assert len([line for line in blocks[0].splitlines() if line.strip()]) <= 11
    spec = manager.get("methods", "agree")
    data, task, _ = tiny_task()
    events: list[Mapping[str, Any]] = []
    method = shrink(spec.load())(manager_config(spec), task, tiny_context(epochs=2, log=events.append))
    method.fit(data)
    assert {"cls_u", "agreement"} <= set(events[-1]["losses"])
    assert 0 <= events[-1]["losses"]["agreement"] <= 0.2


def test_it_has_at_most_forty_lines_of_code_and_uses_the_public_interface_only(blocks: list[str]) -> None:
    lines = [line for line in blocks[1].splitlines() if line.strip()]
    assert len(lines) <= 40
    imported = {line.split()[1] for line in lines if line.startswith(("from gcdbench", "import gcdbench"))}
    assert imported == {"gcdbench.api", "gcdbench.plugins"}


def test_it_trains_through_the_registry(manager: PluginManager) -> None:
    spec = manager.get("methods", "pseudo")
    data, task, truth = tiny_task(images=64, seed=3)
    events: list[Mapping[str, Any]] = []
    method = shrink(spec.load())(manager_config(spec), task, tiny_context(epochs=30, log=events.append))
    method.fit(data)
    prediction = method.predict(data.unlabelled)
    old = truth[prediction.ids] < task.k_old
    assert (prediction.cluster == truth[prediction.ids])[old].mean() > 0.9
    assert set(events[-1]["losses"]) == {"given", "pseudo", "spread", "contrast"}


def manager_config(spec: Any) -> Any:
    from gcdbench.plugins.specs import load_attribute

    return load_attribute(spec.config)()


def test_the_short_example_runs(manager: PluginManager, blocks: list[str]) -> None:
    spec = manager.get("methods", "pseudo")
    names: dict[str, Any] = {"Pseudo": spec.load(), "PseudoConfig": type(manager_config(spec))}
    exec(compile(blocks[2], str(PAGE), "exec"), names)
    assert np.isfinite(names["prediction"].embedding).all()


def test_every_hook_of_the_base_class_is_on_the_page() -> None:
    table = PAGE.read_text()
    inner = {"fit", "predict", "forward", "state_dict", "load_state_dict", "save_model", "trained_modules"}
    inner |= {"auxiliary_state", "load_auxiliary_state"}
    for name, value in vars(ParametricMethod).items():
        if callable(value) and not name.startswith("_") and name not in inner:
            assert name in table, f"{name} is not documented"
