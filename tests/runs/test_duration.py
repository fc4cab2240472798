"""Expected durations: the cost model worked by hand, what is in the cache, and a measurement that is remembered."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gcdbench.cli.run import headline
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.duration import (
    DECODE,
    SHARING,
    START,
    ImageCount,
    Present,
    count_images,
    expected_seconds,
    find_present,
    sum_up,
)
from gcdbench.runs.execution import Execution
from gcdbench.runs.machine_speed import Speed, is_measured, measure_speed, recall_speed
from gcdbench.runs.placement import Placement
from gcdbench.runs.plan import Plan, make_plan
from gcdbench.runs.request import Request
from gcdbench.runs.runner import execute
from gcdbench.views.budget import ViewSize
from gcdbench.views.setting import parse_views
from tests.runs.test_auto_views import PLUGIN

SPEED = Speed(view=0.003, step=0.01, predict=0.002, height=8, width=8, channels=112)
COUNT = ImageCount(images=1000, training=800)


@pytest.fixture
def manager(tmp_path: Path) -> PluginManager:
    file = tmp_path / "plugin_for_durations.py"
    file.write_text(PLUGIN)
    return PluginManager(points=[], files=[file])


@pytest.fixture
def planned(manager: PluginManager) -> Callable[..., Plan]:
    def plan(views: str = "bank:4", dataset: str = "phantom", method: str = "small", **options: str) -> Plan:
        settings = {"backbone": "tiny", "image_size": "32", "views": views, "epochs": "5", "batch_size": "16"}
        if method != "small":
            settings = {"image_size": "32", "backbone": "tiny"}
        return make_plan(Request(method=method, dataset=dataset, overrides=settings, dataset_options=options), manager)

    return plan


@pytest.mark.parametrize(
    ("views", "present", "made"),
    [
        ("bank:4", Present(), 4 * 800 + 1000),
        ("bank:4", Present(views=3), 800 + 1000),
        ("bank:4", Present(views=9, test_views=True), 0),
        ("bank8:4", Present(test_views=True), 4 * 800),
        ("rolling:4/2", Present(), (4 + 2 * 4) * 800 + 1000),
        ("online", Present(views=9, test_views=True), 5 * 800 * 2 + 1000),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_the_cost_model(planned: Callable[..., Plan], views: str, present: Present, made: int, threads: int) -> None:
    together = threads**SHARING
    expected = START + 1000 * DECODE / threads + made * 0.003 / threads + 5 * 800 * 0.01 / together
    expected += 1000 * 0.002 / together
    assert sum_up(planned(views), COUNT, SPEED, present, threads=threads) == pytest.approx(expected)
    stored = dataclasses.replace(present, store=True)
    assert sum_up(planned(views), COUNT, SPEED, stored, threads=threads) == pytest.approx(
        expected - 1000 * DECODE / threads
    )


def test_a_method_that_is_not_trained_takes_features_only(planned: Callable[..., Plan]) -> None:
    plan = planned(method="kmeans")
    assert sum_up(plan, COUNT, SPEED, Present(store=True), threads=1) == pytest.approx(START + 1000 * 0.005)


def test_images_are_counted_in_folders_too(
    planned: Callable[..., Plan], manager: PluginManager, tmp_path: Path
) -> None:
    for label, count in (("a", 3), ("b", 4)):
        (tmp_path / "mine" / label).mkdir(parents=True)
        for index in range(count):
            pixels = np.full((8, 8, 3), 10 * index + ord(label), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "mine" / label / f"{index}.png")
    assert count_images(planned(dataset=f"folder:{tmp_path / 'mine'}"), manager) == ImageCount(images=7, training=7)
    assert count_images(planned(n_per_class="20"), manager) == ImageCount(images=160, training=128)
    assert count_images(planned(dataset=f"folder:{tmp_path / 'absent'}"), manager) is None


@pytest.mark.parametrize("views", ["bank:4", "bank8:3", "rolling:3"])
def test_what_a_run_leaves_behind_the_next_one_finds(
    planned: Callable[..., Plan], manager: PluginManager, tmp_path: Path, views: str
) -> None:
    cache = tmp_path / "cache"
    plan = planned(views, n_per_class="12")
    count = count_images(plan, manager)
    assert count is not None
    assert find_present(cache, plan, count) == Present()
    placement = Placement(runs=tmp_path / "runs", cache=cache, workers=1)
    execute(Execution(plan=plan, placement=placement, manager=manager))
    stored = int(views[-1])
    assert find_present(cache, plan, count) == Present(store=True, test_views=True, views=stored)
    other = planned("bank:4", n_per_class="16")
    more = count_images(other, manager)
    assert more is not None
    assert find_present(cache, other, more) == Present()


def test_a_measurement_is_remembered_and_a_damaged_memory_is_none(
    planned: Callable[..., Plan], manager: PluginManager, tmp_path: Path
) -> None:
    plan = planned()
    assert expected_seconds(plan, COUNT, cache=tmp_path) is None
    measured = measure_speed(tmp_path, plan, manager, device="cpu")
    assert measured is not None
    assert min(measured.view, measured.step, measured.predict) > 0
    assert recall_speed(tmp_path, plan, device="cpu") == measured
    assert recall_speed(tmp_path, planned(method="kmeans"), device="cpu") == measured  # the same network
    assert (expected_seconds(plan, COUNT, cache=tmp_path) or 0) > START
    [memory] = (tmp_path / "speed").iterdir()
    content = bytearray(memory.read_bytes())
    content[20] ^= 1
    memory.write_bytes(content)
    assert recall_speed(tmp_path, plan, device="cpu") is None


def test_what_auto_will_decide_is_what_is_expected(
    planned: Callable[..., Plan], manager: PluginManager, tmp_path: Path
) -> None:
    """Under a budget for three views of the tiny network, and where such views are in the cache already."""
    plan = planned("auto", n_per_class="12")
    count = count_images(plan, manager)
    speed = measure_speed(tmp_path, plan, manager, device="cpu")
    assert count is not None
    assert speed is not None
    size = ViewSize(
        images=count.images,
        training=count.training,
        height=speed.height,
        width=speed.width,
        channels=speed.channels,
    )
    budget = str(size.bank_bytes(parse_views("rolling:3")))
    said = expected_seconds(plan, count, cache=tmp_path, budget=budget, threads=1)
    assert said == expected_seconds(planned("rolling:3", n_per_class="12"), count, cache=tmp_path, threads=1)
    placement = Placement(runs=tmp_path / "runs", cache=tmp_path, workers=1, disk_budget=budget)
    execute(Execution(plan=plan, placement=placement, manager=manager))
    again = expected_seconds(plan, count, cache=tmp_path, budget=budget, threads=1)
    assert again is not None
    assert said is not None
    assert again < said


def test_a_method_that_cannot_be_tried_out_has_no_expected_duration(
    planned: Callable[..., Plan], manager: PluginManager, tmp_path: Path
) -> None:
    plan = planned()
    absent = dataclasses.replace(plan, settings=dataclasses.replace(plan.settings, backbone="absent"))
    assert measure_speed(tmp_path, absent, manager, device="cpu") is None
    assert expected_seconds(absent, COUNT, cache=tmp_path) is None


def test_the_first_line_promises_no_duration_where_the_run_is_stored(
    planned: Callable[..., Plan], manager: PluginManager, tmp_path: Path
) -> None:
    plan, other = planned("bank:2", n_per_class="12"), planned("bank:3", n_per_class="12")
    placement = Placement(runs=tmp_path / "runs", cache=tmp_path / "cache", workers=1)
    request = Request(method="small", dataset="phantom")
    assert not headline(plan, request, placement, manager).endswith("done before")
    execute(Execution(plan=plan, placement=placement, manager=manager))
    assert headline(plan, request, placement, manager).endswith("done before")
    assert not headline(other, request, placement, manager).endswith("done before")
    repeated = dataclasses.replace(placement, force=True)
    assert not headline(plan, request, repeated, manager).endswith("done before")


def test_the_first_line_measures_each_method_whose_run_is_long(
    planned: Callable[..., Plan], manager: PluginManager, tmp_path: Path
) -> None:
    placement = Placement(runs=tmp_path / "runs", cache=tmp_path / "cache", workers=1)
    request = Request(method="small", dataset="phantom")
    short = planned(n_per_class="12")
    assert headline(short, request, placement, manager).endswith("less than a minute")
    assert not is_measured(tmp_path / "cache", short, device=placement.device)
    assert " about " in headline(planned(n_per_class="100"), request, placement, manager)
    assert is_measured(tmp_path / "cache", short, device=placement.device)
