"""How long a run will take: from what it has to do, what is in the cache already, and how fast this machine is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gcdbench.core.cache_upkeep import describe_entries
from gcdbench.core.disk_space import parse_size
from gcdbench.core.errors import GCDBenchError
from gcdbench.core.places import cache_dir, disk_budget
from gcdbench.core.work import available_cores
from gcdbench.datasets.catalogue import open_dataset
from gcdbench.images.decoding import stored_side
from gcdbench.runs.machine_speed import Speed, recall_speed
from gcdbench.views.budget import ViewSize, decide_views
from gcdbench.views.setting import parse_views

if TYPE_CHECKING:
    from gcdbench.plugins.manager import PluginManager
    from gcdbench.runs.plan import Plan

START = 5.0
"""Seconds for imports, weights, the split, scores and files of a run."""

DECODE = 0.008
"""Seconds of one core to read, hash and resize an image; photographs of many megapixels take longer."""


SHORT = 2000
"""Images in training steps that are not worth measuring the machine for: it takes some seconds itself."""

SHARING = 0.75
"""n threads in one step are as fast as n to this power: they wait for each other. Views are made side by side."""


@dataclass(frozen=True, kw_only=True)
class ImageCount:
    """Images of a dataset, and how many of them may be trained on."""

    images: int
    training: int


@dataclass(frozen=True, kw_only=True)
class Present:
    """What is in the cache already: the image store, the test views, and so many stored views."""

    store: bool = False
    test_views: bool = False
    views: int = 0


def count_images(plan: Plan, manager: PluginManager, data_root: Path | None = None) -> ImageCount | None:
    """Images of the plan's dataset, a folder's as well; lists files, decodes nothing. None where it is not here."""
    try:
        source = open_dataset(
            plan.dataset_text,
            manager,
            data_root=data_root,
            image_size=plan.settings.image_size,
            options=plan.dataset_options,
        )
    except GCDBenchError:
        return None
    test = 0 if source.partition is None else int(np.sum(source.partition == "test"))
    return ImageCount(images=len(source), training=len(source) - test)


def expected_seconds(
    plan: Plan,
    count: ImageCount,
    *,
    threads: int | None = None,
    device: str = "cpu",
    cache: Path | None = None,
    budget: str | None = None,
) -> float | None:
    """Seconds of a run on this machine when nothing else runs; None where its network was not measured yet.

    budget: room for stored views where ``views = "auto"`` decides, as in a run's placement.
    """
    folder = cache or cache_dir()
    speed = recall_speed(folder, plan, device=device)
    if speed is None:
        return None
    used = 1 if device != "cpu" else threads or available_cores()
    plan = _decide(plan, count, speed, disk_budget() if budget is None else parse_size(budget))
    return sum_up(plan, count, speed, find_present(folder, plan, count), threads=used)


def find_present(cache: Path, plan: Plan, count: ImageCount) -> Present:
    """What a run of this plan will find; told by sizes and settings, since hashes would need the images themselves."""
    settings, side = plan.settings, stored_side(plan.settings.image_size)
    store = any(
        meta.get("count") == count.images and meta.get("side") == side for _, meta in describe_entries(cache, "stores")
    )
    kind = parse_views(settings.views).kind if settings.views != "none" else "online"
    views, test_views = 0, False
    for folder, meta in describe_entries(cache, "banks"):
        identity = meta.get("identity")
        if not isinstance(identity, Mapping) or not _fits(identity, plan):
            continue
        if "augmentation" not in identity:
            test_views |= meta.get("images") == count.images
        elif meta.get("images") == count.training and meta.get("stored") == kind:
            views = max(views, sum(1 for _ in folder.glob("view-*.npy")))
    return Present(store=store, test_views=test_views, views=views)


def _fits(identity: Mapping[str, Any], plan: Plan) -> bool:
    settings = plan.settings
    augmentation = str(identity.get("augmentation", settings.augmentation)).partition("/")[0]
    return (identity.get("backbone"), identity.get("image_size"), augmentation) == (
        settings.backbone,
        settings.image_size,
        settings.augmentation,
    )


def sum_up(plan: Plan, count: ImageCount, speed: Speed, present: Present, *, threads: int) -> float:
    """The cost model (docs/speed.md): decoding, views, steps, predictions."""
    decoding = 0.0 if present.store else count.images * DECODE / threads
    together = float(threads**SHARING)
    if not plan.method.trained:  # features of the pretrained network, then minutes at most
        return START + decoding + count.images * (speed.view + speed.predict) / threads
    setting = parse_views(plan.settings.views)
    epochs = plan.training.epochs
    training = epochs * count.training * speed.step / together
    if setting.kind == "online":
        making = epochs * count.training * 2 * speed.view + count.images * speed.view
    else:
        wanted = setting.count + setting.fresh * (epochs - 1)
        made = max(wanted - present.views, 0) * count.training + (0 if present.test_views else count.images)
        making = made * speed.view
    return START + decoding + making / threads + training + count.images * speed.predict / together


def _decide(plan: Plan, count: ImageCount, speed: Speed, budget: int) -> Plan:
    """The plan with what ``views = "auto"`` will mean: what is in the cache is looked for under that."""
    if plan.settings.views != "auto":
        return plan
    shape = {"height": speed.height, "width": speed.width, "channels": speed.channels}
    setting = decide_views(ViewSize(images=count.images, training=count.training, **shape), budget)
    return replace(plan, settings=replace(plan.settings, views=str(setting)))
