"""How long a run will take: from what it has to do, what is in the cache already, and how fast this machine is."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gcdbench.core.disk_space import parse_size
from gcdbench.core.errors import GCDBenchError
from gcdbench.core.places import cache_dir, disk_budget
from gcdbench.core.work import available_cores
from gcdbench.datasets.catalogue import open_dataset
from gcdbench.images.decoding import UnreadableImageError, open_image, stored_side, to_square
from gcdbench.runs.cache_contents import Present, find_present, stored_kind, views_made
from gcdbench.runs.machine_speed import Speed, recall_speed
from gcdbench.runs.placement import Placement
from gcdbench.runs.presets import RunSettings
from gcdbench.views.budget import ViewSize, decide_views
from gcdbench.views.chunks import building_threads
from gcdbench.views.setting import parse_views

if TYPE_CHECKING:
    from gcdbench.datasets.source import DatasetSource
    from gcdbench.plugins.manager import PluginManager
    from gcdbench.runs.plan import Plan

START = 5.0
"""Seconds for imports, weights, the split, scores and files of a run."""

DECODE = 0.008
"""Seconds of one core to read, hash and resize an image, where none can be tried."""

TRIED = 8
"""Images that are decoded to see how long it takes."""

SHORT = 2000
"""Images of 128 px in training steps of the default network that are not worth measuring the machine for."""

SHARING = 0.75
"""n threads in one step are as fast as n to this power: they wait for each other. Views are made side by side."""


@dataclass(frozen=True, kw_only=True)
class ImageCount:
    """Images of a dataset, how many of them may be trained on, and seconds of one core to read and resize one."""

    images: int
    training: int
    decode: float = DECODE


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Seconds by the clock. once: what is made for all runs on these images, by all cores; own: the run itself."""

    once: float
    own: float

    @property
    def seconds(self) -> float:
        """Of a run that comes first."""
        return self.once + self.own


def add_up(runs: Iterable[Expected], places: int) -> float:
    """Seconds of these runs with so many at a time; what is made once is made by all cores while others wait."""
    runs = list(runs)
    own = [run.own for run in runs]
    longest = max(own, default=0.0)
    return sum(run.once for run in runs) + max(sum(own) / max(min(places, len(runs)), 1), longest)


def count_images(plan: Plan, manager: PluginManager, placement: Placement) -> ImageCount | None:
    """Images of the plan's dataset, a folder's as well; lists files and decodes a few. None where it is not here."""
    try:
        source = open_dataset(
            plan.dataset_text,
            manager,
            data_root=placement.data_root,
            image_size=plan.settings.image_size,
            options=plan.dataset_options,
        )
    except GCDBenchError:
        return None
    return look_at(source, plan.settings.image_size)


def look_at(source: DatasetSource, image_size: int) -> ImageCount:
    """How many images there are, and how long one takes."""
    test = 0 if source.partition is None else int(np.sum(source.partition == "test"))
    return ImageCount(images=len(source), training=len(source) - test, decode=_time_decoding(source, image_size))


def _time_decoding(source: DatasetSource, image_size: int) -> float:
    """Processor seconds of one image, as the store is made: read and hashed, then read again and resized."""
    from PIL import Image

    tried = np.linspace(0, len(source) - 1, min(TRIED, len(source))).astype(int).tolist()
    side = stored_side(image_size)
    started = time.thread_time()
    try:
        for index in tried:
            hashlib.sha256(source.raw(index))
            content = source.raw(index)
            image = Image.fromarray(source.decode(content)) if source.decode else open_image(content)
            to_square(image, side)
    except (GCDBenchError, UnreadableImageError, OSError, ValueError, TypeError):  # the run will say what is wrong
        return DECODE
    return (time.thread_time() - started) / len(tried) if tried else DECODE


def is_short(plan: Plan, count: ImageCount) -> bool:
    """Whether a run takes seconds on any machine: few images through the default network, which is small."""
    images = plan.training.epochs * count.training * (plan.settings.image_size / 128) ** 2
    return plan.settings.backbone == RunSettings().backbone and images <= SHORT


class Expectations:
    """Expected durations of runs one after the other: what one of them makes, the next ones find."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._cache = placement.cache or cache_dir()
        self._promised: dict[tuple[object, ...], Present] = {}

    def expect(self, plan: Plan, count: ImageCount) -> Expected | None:
        """The next run, when nothing else runs; None where its network was not measured on this machine yet."""
        speed = recall_speed(self._cache, plan, device=self._placement.device)
        if speed is None:
            return None
        plan = self._decide(plan, count, speed)
        present = find_present(self._cache, plan, images=count.images, training=count.training)
        settings = plan.settings
        images = (plan.dataset_text, *sorted(plan.dataset_options.items()), settings.image_size)
        network = (*images, settings.backbone, settings.weights)
        made = {
            images: Present(store=True),
            network: Present(test_views=plan.method.trained, features=not plan.method.trained),
            (*network, settings.augmentation, stored_kind(plan)): Present(views=_wanted(plan)),
        }
        for key, there in made.items():
            present |= self._promised.get(key, Present())
            self._promised[key] = there | self._promised.get(key, Present())
        return sum_up(plan, count, speed, present, self._placement)

    def _decide(self, plan: Plan, count: ImageCount, speed: Speed) -> Plan:
        """The plan with what ``views = "auto"`` will mean: what is in the cache is looked for under that."""
        if plan.settings.views != "auto":
            return plan
        budget = self._placement.disk_budget
        shape = {"height": speed.height, "width": speed.width, "channels": speed.channels}
        setting = decide_views(
            ViewSize(images=count.images, training=count.training, **shape),
            disk_budget() if budget is None else parse_size(budget),
        )
        return replace(plan, settings=replace(plan.settings, views=str(setting)))


def sum_up(plan: Plan, count: ImageCount, speed: Speed, present: Present, placement: Placement) -> Expected:
    """The cost model (docs/speed.md): decoding, views, steps, predictions. Clustering by itself is not in it."""
    cores = available_cores()
    threads, makers = placement.threads or cores, building_threads(cores, plan.settings.image_size)
    if placement.device != "cpu":
        threads = makers = 1
    workers = max(cores if placement.workers is None else placement.workers, 1)
    decoding = 0.0 if present.store else count.images * count.decode / workers
    if not plan.method.trained:
        features = 0.0 if present.features else count.images * (speed.view + speed.predict) / makers
        return Expected(once=decoding + features, own=START)
    together = float(threads**SHARING)
    epochs = plan.training.epochs
    tests = 0 if present.test_views else count.images
    own = START + (epochs * count.training * speed.step + count.images * speed.predict) / together
    if parse_views(plan.settings.views).kind == "online":
        each_time = epochs * count.training * 2 + count.images
        return Expected(once=decoding, own=own + each_time * speed.view / makers)
    made = max(_wanted(plan) - present.views, 0) * count.training + tests
    return Expected(once=decoding + made * speed.view / makers, own=own)


def _wanted(plan: Plan) -> int:
    return views_made(plan) if plan.method.trained else 0
