"""Our training loop, timed step by step, on the same images as the published one.

python -m benchmarks.speed.ours '{"folder": "...", "cache": "..."}'
"""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.speed.images import open_source
from benchmarks.speed.settings import Settings, parse_settings
from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.images.image_set import ImageSet
from gcdbench.images.image_store import prepare_store
from gcdbench.methods.configs import SimGCDConfig
from gcdbench.methods.simgcd import SimGCD
from gcdbench.models.backbone import Backbone
from gcdbench.models.lite0 import load_lite0
from gcdbench.models.resnet import load_resnet18
from gcdbench.splits.data import GCDData
from gcdbench.training.batch import Batch
from gcdbench.training.config import TrainingConfig
from gcdbench.training.context import RunContext
from gcdbench.training.method import TaskInfo
from gcdbench.views.bank import open_views


def load_backbone(name: str) -> Backbone:
    """Random weights: for timing they are as good as trained ones."""
    return load_resnet18("none") if name == "resnet18" else load_lite0("none")


def make_context(settings: Settings, key: str) -> RunContext:
    """A run of one short epoch."""
    return RunContext(
        seed=0,
        image_size=settings.image_size,
        views=settings.views,
        store_key=key,
        cache_dir=Path(settings.cache),
        load_backbone=lambda: load_backbone(settings.backbone),
        training=TrainingConfig(epochs=1, batch_size=settings.batch),
    )


class TimedSimGCD(SimGCD):
    """SimGCD that stops after a number of steps and notes the time after each."""

    def __init__(self, settings: Settings, context: RunContext) -> None:
        super().__init__(SimGCDConfig(), TaskInfo(k_old=4, k=settings.k, image_size=settings.image_size), context)
        self.positions = settings.batch * (settings.steps + settings.warmup)
        self.times: list[float] = []

    def sampler(self, labels: IntArray, epoch: int, generator: np.random.Generator) -> IntArray:
        return generator.integers(0, len(labels), self.positions)

    def after_step(self, batch: Batch) -> None:
        self.times.append(time.perf_counter())


def split(pixels: Pixels) -> GCDData:
    """A quarter labelled, as when half of the classes are old and half of their images labelled."""
    ids = np.arange(len(pixels))
    labelled = ids[ids % 4 == 0]
    return GCDData(
        labelled=ImageSet(ids=labelled, store=pixels),
        labels=labelled // 4 % 4,
        unlabelled=ImageSet(ids=ids[ids % 4 != 0], store=pixels),
    )


def time_training(settings: Settings, pixels: Pixels, key: str) -> dict[str, Any]:
    """Seconds per step and seconds per image of the final prediction; the bank must be there already."""
    method = TimedSimGCD(settings, make_context(settings, key))
    data = split(pixels)
    method.fit(data)
    times = method.times[settings.warmup - 1 :]
    started = time.perf_counter()
    method.predict(data.unlabelled)
    predicted = (time.perf_counter() - started) / len(data.unlabelled)
    return {"step": (times[-1] - times[0]) / (len(times) - 1), "evaluation": predicted}


def main() -> None:
    """Print seconds for preparing an image, for building a view, and for a step."""
    settings = parse_settings()
    torch.set_num_threads(settings.threads)
    source = open_source(Path(settings.folder))
    count = min(settings.images, len(source))
    chosen = dataclasses.replace(
        source, keys=source.keys[:count], labels=source.labels[:count], groups=None, partition=None
    )
    started = time.perf_counter()
    store = prepare_store(chosen, settings.image_size, Path(settings.cache))
    prepared = time.perf_counter()
    open_views(make_context(settings, store.key), store.pixels).start_epoch(0)
    built = time.perf_counter()
    answer = {"images": count, "prepare": prepared - started, "bank": built - prepared}
    print(json.dumps({**answer, **time_training(settings, store.pixels, store.key)}))


if __name__ == "__main__":
    main()
