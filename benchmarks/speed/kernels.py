"""What compiled kernels gain: views, frozen prefix and training step with them and without, in one thread.

    python -m benchmarks.speed --only kernels

Each figure is the median of several repeats, each in a process of its own, with and without in turns, so that a slow
minute of the machine hits both. ``GCDBENCH_NATIVE=0`` is what switches compiled kernels off.

    python -m benchmarks.speed.kernels '{"folder": "", "threads": 1, "cache": "..."}'

prints one repeat.
"""

from __future__ import annotations

import dataclasses
import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from benchmarks.speed.ours import TimedSimGCD, load_backbone, make_context, split
from benchmarks.speed.prefix import views_per_second
from benchmarks.speed.settings import Settings, measure, parse_settings
from gcdbench.core.arrays import Pixels
from gcdbench.images.decoding import stored_side
from gcdbench.models.kernels import describe_kernels
from gcdbench.models.kernels.loader import SWITCH
from gcdbench.views.augmentation import augment, find_augmentation
from gcdbench.views.building import run_prefix
from gcdbench.views.chunks import chunk_size

UNITS = {"views": "views per second", "prefix": "images per second", "step": "steps per second"}


def time_views(settings: Settings, pixels: Pixels) -> float:
    """Augmented views per second, made in chunks as a bank makes them."""
    ids = np.arange(min(len(pixels), chunk_size(settings.image_size)))
    augmentation = find_augmentation("paper")

    def work() -> None:
        for draw in range(settings.steps):
            augment(pixels[ids], augmentation=augmentation, ids=ids, draw=draw, seed=0, size=settings.image_size)

    return views_per_second(work, settings.steps * len(ids))


def time_prefix(settings: Settings) -> float:
    """Images per second through the frozen prefix."""
    backbone = load_backbone(settings.backbone)
    count = chunk_size(settings.image_size)
    images = torch.rand(count, 3, settings.image_size, settings.image_size).to(memory_format=torch.channels_last)

    def work() -> None:
        for _ in range(settings.steps):
            run_prefix(backbone, images)

    return views_per_second(work, settings.steps * count)


def time_step(settings: Settings, pixels: Pixels) -> float:
    """Training steps per second, from a bank."""
    method = TimedSimGCD(settings, make_context(settings, f"random-{len(pixels)}"))
    method.fit(split(pixels))
    return 1.0 / float(np.median(np.diff(method.times[settings.warmup - 1 :])))


def measure_once(settings: Settings) -> dict[str, Any]:
    """One repeat with the kernels this process has."""
    side = stored_side(settings.image_size)
    pixels = np.random.default_rng(0).integers(0, 256, (settings.images, side, side, 3), dtype=np.uint8)
    started = time.perf_counter()
    figures = {
        "views": time_views(settings, pixels),
        "prefix": time_prefix(settings),
        "step": time_step(settings, pixels),
    }
    return {"kernels": describe_kernels(), "seconds": time.perf_counter() - started, **figures}


def compare(settings: Settings, *, repeats: int) -> list[dict[str, Any]]:
    """Medians of ``repeats`` processes with and without compiled kernels, and all the single figures."""
    found: dict[str, list[dict[str, Any]]] = {"native": [], "torch": []}
    with tempfile.TemporaryDirectory() as cache:
        here = dataclasses.replace(settings, cache=cache, threads=1)
        for _ in range(repeats):
            for kind, switch in (("native", "1"), ("torch", "0")):
                found[kind].append(measure("kernels", here, environment={SWITCH: switch}))
    wrong = {each["kernels"] for each in found["native"]} - {"native"}
    if wrong:
        raise SystemExit("no kernel could be compiled on this machine: there is nothing to compare")
    rows = []
    for what, unit in UNITS.items():
        values = {kind: [float(each[what]) for each in entries] for kind, entries in found.items()}
        medians = {kind: median(each) for kind, each in values.items()}
        rows.append(
            {
                "backbone": settings.backbone,
                "what": what,
                "unit": unit,
                "with": medians["native"],
                "without": medians["torch"],
                "gain": medians["native"] / medians["torch"],
                "repeats": values,
            }
        )
    return rows


def main() -> None:
    """Print one repeat."""
    settings = parse_settings()
    torch.set_num_threads(settings.threads)
    Path(settings.cache).mkdir(parents=True, exist_ok=True)
    print(json.dumps(measure_once(settings)))


if __name__ == "__main__":
    main()
