"""``views = "auto"`` through the runner: decided, said, recorded, and the same run as the one it decided for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gcdbench.core.errors import ConfigError
from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.records import cell_records
from gcdbench.reporting.suites.finding import RunFinder
from gcdbench.runs.events import Event, Note
from gcdbench.runs.execution import Execution
from gcdbench.runs.index import load_runs
from gcdbench.runs.placement import Placement
from gcdbench.runs.plan import make_plan
from gcdbench.runs.request import Request
from gcdbench.runs.runner import execute

PLUGIN = """
from gcdbench.api import SimGCD
from gcdbench.plugins import BackboneSpec, MethodSpec, hookimpl
from gcdbench.plugins.specs import API_VERSION
from gcdbench.testing.tiny import TinyBackbone, shrink


def load_tiny(weights):
    return TinyBackbone()


class Small(shrink(SimGCD)):
    pass


@hookimpl
def gcdbench_methods():
    spec = dict(factory=f"{__name__}:Small", config="gcdbench.api:SimGCDConfig", trained=True, api=API_VERSION)
    return [MethodSpec(name="small", **spec)]


@hookimpl
def gcdbench_backbones():
    return [BackboneSpec(name="tiny", factory=f"{__name__}:load_tiny", api=API_VERSION)]
"""


@pytest.fixture
def manager(tmp_path: Path) -> PluginManager:
    file = tmp_path / "plugin_for_auto_views.py"
    file.write_text(PLUGIN)
    return PluginManager(points=[], files=[file])


def asked(views: str) -> Request:
    settings = {"backbone": "tiny", "image_size": "32", "views": views, "epochs": "2", "batch_size": "16"}
    return Request(method="small", dataset="phantom", overrides=settings, dataset_options={"n_per_class": "12"})


def run(
    manager: PluginManager, folder: Path, views: str, budget: str | None = None, events: list[Any] | None = None
) -> Any:
    request = asked(views)
    placement = Placement(runs=folder / "runs", cache=folder / "cache", workers=1, disk_budget=budget)

    def listen(event: Event) -> None:
        if events is not None:
            events.append(event)

    plan = make_plan(request, manager)
    return execute(Execution(plan=plan, placement=placement, manager=manager, listener=listen))


@pytest.mark.parametrize("budget", ["1GB", "2MB", "1MB", "1kB"])
def test_what_auto_decides_names_the_run_and_is_said(manager: PluginManager, tmp_path: Path, budget: str) -> None:
    events: list[Any] = []
    first = run(manager, tmp_path, "auto", budget, events)
    decided = first.record.identity["views"]
    assert decided != "auto"
    [note] = [event.message for event in events if isinstance(event, Note) and "auto" in event.message]
    assert decided in note
    again = run(manager, tmp_path, decided)
    assert again.reused
    assert again.directory.path == first.directory.path


def test_budgets_make_a_difference(manager: PluginManager, tmp_path: Path) -> None:
    kinds = {
        run(manager, tmp_path, "auto", budget).record.identity["views"].partition(":")[0]
        for budget in ("1GB", "2MB", "1MB", "1kB")
    }
    assert kinds == {"bank", "bank8", "rolling", "online"}


def test_a_stored_run_is_found_by_the_request_that_made_it(manager: PluginManager, tmp_path: Path) -> None:
    def found(views: str) -> list[str]:
        finder = RunFinder(cell_records(load_runs(tmp_path / "runs")), manager)
        return [record.views for record in finder.find(asked(views))]

    run(manager, tmp_path, "bank:4")
    assert found("auto") == []  # never decided: it would be 16 of them, or fewer in 8 bits
    for budget in ("1kB", "1MB", "2MB", "1GB"):  # under a larger budget another run, which is taken from then on
        decided = run(manager, tmp_path, "auto", budget).record.identity["views"]
        assert found("auto") == found(decided) == [decided]


def test_a_budget_that_is_no_size_is_refused(manager: PluginManager, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'much' is not a size"):
        run(manager, tmp_path, "auto", "much")
