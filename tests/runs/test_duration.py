"""Expected durations: the cost model worked by hand, what is in the cache, and a measurement that is remembered."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gcdbench.cli.run import headline
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs import duration
from gcdbench.runs.cache_contents import Present, find_present
from gcdbench.runs.duration import (
    DECODE,
    SHARING,
    START,
    Expectations,
    Expected,
    ImageCount,
    add_up,
    count_images,
    is_short,
    sum_up,
)
from gcdbench.runs.execution import Execution
from gcdbench.runs.machine_speed import Speed, is_measured, measure_speed, recall_speed
from gcdbench.runs.placement import Placement
from gcdbench.runs.plan import Plan, make_plan
from gcdbench.runs.presets import RunSettings
from gcdbench.runs.request import Request
from gcdbench.runs.runner import execute
from gcdbench.views.budget import ViewSize
from gcdbench.views.chunks import building_threads
from gcdbench.views.setting import parse_views
from tests.runs.test_auto_views import PLUGIN

COUNT = ImageCount(images=1000, training=800, decode=0.02)
SPEED = Speed(view=0.003, step=0.01, predict=0.002, height=8, width=8, channels=112)


def expect(plan: Plan, *, cache: Path) -> Expected | None:
    return Expectations(Placement(cache=cache)).expect(plan, COUNT)


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


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duration, "available_cores", lambda: 4)


@pytest.mark.parametrize(
    ("views", "present", "made"),
    [
        ("bank:4", Present(), 4 * 800 + 1000),
        ("bank:4", Present(views=3), 800 + 1000),
        ("bank:4", Present(views=9, test_views=True), 0),
        ("bank8:4", Present(test_views=True), 4 * 800),
        ("rolling:4/2", Present(), (4 + 2 * 4) * 800 + 1000),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_the_cost_model(planned: Callable[..., Plan], views: str, present: Present, made: int, threads: int) -> None:
    """Steps and predictions take the run's threads; views all cores, whoever else waits for them; decoding workers."""
    placement = Placement(threads=threads, workers=2)
    own = START + (5 * 800 * 0.01 + 1000 * 0.002) / threads**SHARING
    told = sum_up(planned(views), COUNT, SPEED, present, placement)
    assert told.once == pytest.approx(1000 * 0.02 / 2 + made * 0.003 / 4)
    assert told.own == pytest.approx(own)
    assert told.seconds == pytest.approx(told.once + own)
    stored = dataclasses.replace(present, store=True)
    assert sum_up(planned(views), COUNT, SPEED, stored, placement).once == pytest.approx(made * 0.003 / 4)


def test_views_in_every_step_are_each_runs_own(planned: Callable[..., Plan]) -> None:
    present = Present(store=True, views=9, test_views=True)
    told = sum_up(planned("online"), COUNT, SPEED, present, Placement(threads=1))
    assert told.once == 0
    assert told.own == pytest.approx(START + 5 * 800 * 0.01 + 1000 * 0.002 + (5 * 800 * 2 + 1000) * 0.003 / 4)


def test_many_cores_build_as_many_views_at_once_as_fit_into_memory(
    planned: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duration, "available_cores", lambda: 64)
    plan = planned()
    large = dataclasses.replace(plan, settings=dataclasses.replace(plan.settings, image_size=128))
    told = sum_up(large, COUNT, SPEED, Present(store=True, test_views=True), Placement())
    assert told.once == pytest.approx(4 * 800 * 0.003 / building_threads(64, 128))
    assert building_threads(64, 128) < 64


def test_a_method_that_is_not_trained_takes_features_only(planned: Callable[..., Plan]) -> None:
    plan = planned(method="kmeans")
    told = sum_up(plan, COUNT, SPEED, Present(store=True), Placement())
    assert (told.once, told.own) == (pytest.approx(1000 * 0.005 / 4), START)
    assert sum_up(plan, COUNT, SPEED, Present(store=True, features=True), Placement()).once == 0


@pytest.mark.parametrize(
    ("places", "seconds"),
    [(1, 30 + 10 + 20 + 60), (2, 30 + 60), (3, 30 + 60), (100, 30 + 60)],
)
def test_what_several_runs_take_together(places: int, seconds: float) -> None:
    """Never less than the longest, and no faster than there are runs to be done at once."""
    runs = [Expected(once=30, own=10), Expected(once=0, own=20), Expected(once=0, own=60)]
    assert add_up(runs, places) == pytest.approx(seconds)
    assert add_up(runs[:1], places) == 40
    assert add_up([], places) == 0


def test_runs_of_a_sweep_pay_once_for_what_they_share(
    planned: Callable[..., Plan], manager: PluginManager, tmp_path: Path
) -> None:
    placement = Placement(cache=tmp_path, threads=1)
    first, other, unlike = planned("bank:4"), planned("bank8:4"), planned("bank:6")
    measure_speed(tmp_path, first, manager, device="cpu")
    expectations = Expectations(placement)
    told = [expectations.expect(plan, COUNT) for plan in (first, first, other, unlike, unlike)]
    once = [one.once if one else float("nan") for one in told]
    assert once[1] == once[4] == 0
    assert once[0] > once[2] > once[3] > 0  # all of it; views in another form; two more views


def test_images_are_counted_in_folders_too(
    planned: Callable[..., Plan], manager: PluginManager, tmp_path: Path
) -> None:
    for label, count in (("a", 3), ("b", 4)):
        (tmp_path / "mine" / label).mkdir(parents=True)
        for index in range(count):
            pixels = np.full((8, 8, 3), 10 * index + ord(label), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "mine" / label / f"{index}.png")

    def counted(**dataset: str) -> tuple[int, int] | None:
        count = count_images(planned(**dataset), manager, Placement())
        return None if count is None else (count.images, count.training)

    assert counted(dataset=f"folder:{tmp_path / 'mine'}") == (7, 7)
    assert counted(n_per_class="20") == (160, 128)
    assert counted(dataset=f"folder:{tmp_path / 'absent'}") is None


def test_large_photographs_take_longer_to_decode_and_unreadable_ones_stop_nothing(
    planned: Callable[..., Plan], manager: PluginManager, tmp_path: Path
) -> None:
    def decoding(side: int | None) -> float:
        folder = tmp_path / str(side)
        for label in "ab":
            (folder / label).mkdir(parents=True)
            noise = np.random.default_rng(0).integers(0, 256, (side or 1, side or 1, 3), dtype=np.uint8)
            for index in range(2):
                file = folder / label / f"{index}.jpg"
                Image.fromarray(noise).save(file) if side else file.write_bytes(b"no image")
        count = count_images(planned(dataset=f"folder:{folder}"), manager, Placement())
        assert count is not None
        return count.decode

    assert decoding(1500) > 5 * decoding(60) > 0
    assert decoding(None) == DECODE


@pytest.mark.parametrize("views", ["bank:4", "bank8:3", "rolling:3"])
def test_what_a_run_leaves_behind_the_next_one_finds(
    planned: Callable[..., Plan], manager: PluginManager, tmp_path: Path, views: str
) -> None:
    cache = tmp_path / "cache"
    plan = planned(views, n_per_class="12")
    count = count_images(plan, manager, Placement())
    assert count is not None

    def found(plan: Plan, count: ImageCount) -> Present:
        return find_present(cache, plan, images=count.images, training=count.training)

    assert found(plan, count) == Present()
    placement = Placement(runs=tmp_path / "runs", cache=cache, workers=1)
    execute(Execution(plan=plan, placement=placement, manager=manager))
    stored = int(views[-1])
    assert found(plan, count) == Present(store=True, test_views=True, views=stored)
    untrained = planned(method="kmeans", n_per_class="12")
    assert found(untrained, count) == Present(store=True, test_views=True)
    execute(Execution(plan=untrained, placement=placement, manager=manager))
    assert found(untrained, count) == Present(store=True, test_views=True, features=True)
    other = planned("bank:4", n_per_class="16")
    more = count_images(other, manager, Placement())
    assert more is not None
    assert found(other, more) == Present()


def test_a_measurement_is_remembered_and_a_damaged_memory_is_none(
    planned: Callable[..., Plan], manager: PluginManager, tmp_path: Path
) -> None:
    plan = planned()
    assert expect(plan, cache=tmp_path) is None
    measured = measure_speed(tmp_path, plan, manager, device="cpu")
    assert measured is not None
    assert min(measured.view, measured.step, measured.predict) > 0
    assert recall_speed(tmp_path, plan, device="cpu") == measured
    assert recall_speed(tmp_path, planned(method="kmeans"), device="cpu") == measured  # the same network
    told = expect(plan, cache=tmp_path)
    assert told is not None
    assert told.own > START
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
    count = count_images(plan, manager, Placement())
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
    placement = Placement(runs=tmp_path / "runs", cache=tmp_path, workers=1, disk_budget=budget)
    said = Expectations(placement).expect(plan, count)
    assert said == Expectations(placement).expect(planned("rolling:3", n_per_class="12"), count)
    execute(Execution(plan=plan, placement=placement, manager=manager))
    again = Expectations(placement).expect(plan, count)
    assert again is not None
    assert said is not None
    assert again.once < said.once


def test_a_method_that_cannot_be_tried_out_has_no_expected_duration(
    planned: Callable[..., Plan], manager: PluginManager, tmp_path: Path
) -> None:
    plan = planned()
    absent = dataclasses.replace(plan, settings=dataclasses.replace(plan.settings, backbone="absent"))
    assert measure_speed(tmp_path, absent, manager, device="cpu") is None
    assert expect(absent, cache=tmp_path) is None


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


def test_ones_own_images_may_have_changed_since(
    planned: Callable[..., Plan], manager: PluginManager, tmp_path: Path
) -> None:
    for index in range(8):
        (tmp_path / "mine" / f"class {index % 4}").mkdir(parents=True, exist_ok=True)
        noise = np.random.default_rng(index).integers(0, 256, (40, 40, 3), dtype=np.uint8)
        Image.fromarray(noise).save(tmp_path / "mine" / f"class {index % 4}" / f"{index}.png")
    plan = planned("bank:2", dataset=f"folder:{tmp_path / 'mine'}")
    placement = Placement(runs=tmp_path / "runs", cache=tmp_path / "cache", workers=1)
    request = Request(method="small", dataset=plan.dataset_text)
    execute(Execution(plan=plan, placement=placement, manager=manager))
    assert headline(plan, request, placement, manager).endswith("unless done before on these images")


def test_the_first_line_measures_each_method_whose_run_may_be_long(
    planned: Callable[..., Plan], manager: PluginManager, tmp_path: Path
) -> None:
    """Few small images through the default network are not worth it; any other network may be large."""
    placement = Placement(runs=tmp_path / "runs", cache=tmp_path / "cache", workers=1)
    request = Request(method="small", dataset="phantom")
    plan = planned(n_per_class="12")
    short = dataclasses.replace(plan, settings=dataclasses.replace(plan.settings, backbone=RunSettings().backbone))
    assert headline(short, request, placement, manager).endswith("less than a minute")
    assert not is_measured(tmp_path / "cache", short, device=placement.device)
    larger = dataclasses.replace(short, settings=dataclasses.replace(short.settings, image_size=512))
    count = count_images(plan, manager, placement)
    assert count is not None
    assert (is_short(short, count), is_short(larger, count)) == (True, False)
    assert " about " in headline(plan, request, placement, manager)
    assert is_measured(tmp_path / "cache", plan, device=placement.device)


def test_a_method_that_ends_the_process_has_no_expected_duration(
    planned: Callable[..., Plan], manager: PluginManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned()
    monkeypatch.setattr(plan.method.load(), "fit", lambda *_: sys.exit(0))
    assert measure_speed(tmp_path, plan, manager, device="cpu") is None
