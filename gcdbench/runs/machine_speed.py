"""How fast this machine trains a method: a short measurement, remembered in the cache.

A run of 64 random images, one step per epoch, tells what a view, a step and a prediction cost. On a CPU it has one
thread, and its processor time is measured, not the clock's: threads that wait for each other, or for other programs,
would make a busy machine look like a slow one. Nothing here may change a result, and what is remembered wrongly, or not
at all, is measured again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gcdbench.core.machine import memory_file, recall, remember
from gcdbench.core.places import cache_dir
from gcdbench.core.work import available_cores
from gcdbench.images.decoding import stored_side
from gcdbench.images.image_set import ImageSet
from gcdbench.runs.environment import package_versions
from gcdbench.runs.events import EpochEnd, Progress, make_event
from gcdbench.splits.data import GCDData
from gcdbench.training.config import TrainingConfig
from gcdbench.training.method import TaskInfo

if TYPE_CHECKING:
    from gcdbench.plugins.manager import PluginManager
    from gcdbench.runs.executors.base import Job
from gcdbench.runs.plan import Plan

VIEWS = 2
IMAGES = 64
CLASSES = 8

DECIDERS = ("GCDBENCH_NATIVE", "GCDBENCH_PRODUCTS")
"""Environment variables that choose kernels and the library for products: each choice has a speed of its own."""


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Seconds of one thread for a stored view, for an image in a training step (two views), and for a prediction.

    height, width, channels: of the prefix's output, which say how large a view is.
    """

    view: float
    step: float
    predict: float
    height: int
    width: int
    channels: int


def recall_speed(cache: Path, plan: Plan, *, device: str) -> Speed | None:
    """What was measured before, with this method or, failing that, the slowest on this network; needs no torch."""
    known = _read(_memory(cache, plan, device))
    name = _method(plan)
    return known.get(name) or max(known.values(), key=lambda speed: speed.step, default=None)


def is_measured(cache: Path, plan: Plan, *, device: str) -> bool:
    """Whether this method was measured on this network here."""
    return _method(plan) in _read(_memory(cache, plan, device))


def measure_speed(cache: Path, plan: Plan, manager: PluginManager, *, device: str) -> Speed | None:
    """Measure and remember; None where the method or its backbone cannot be tried out in this way."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        speed = _try_out(plan, manager, device)
    except (Exception, SystemExit):  # a third party's method may do anything, and an estimate is not worth a failed run
        return None
    finally:
        torch.set_num_threads(before)
    file = _memory(cache, plan, device)
    remember(file, {**recall(file), _method(plan): asdict(speed)})
    return speed


def measure_in_child(job: Job) -> None:
    """As :func:`measure_speed`, without importing torch here; whatever goes wrong, there is no estimate then."""
    import subprocess
    import sys

    from gcdbench.runs.executors.wire import encode_job

    command = [sys.executable, "-m", "gcdbench.runs.machine_speed"]
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(command, input=encode_job(job), text=True, capture_output=True, timeout=120, check=False)


def main() -> None:
    """Measure what a job on the standard input asks for."""
    import sys

    from gcdbench.plugins.manager import get_manager
    from gcdbench.runs.executors.wire import decode_job
    from gcdbench.runs.plan import make_plan

    job, manager = decode_job(sys.stdin.read()), get_manager()
    cache = job.placement.cache or cache_dir()
    measure_speed(cache, make_plan(job.request, manager), manager, device=job.placement.device)


def _read(file: Path) -> dict[str, Speed]:
    try:
        return {name: Speed(**value) for name, value in recall(file).items()}
    except TypeError:
        return {}


def _method(plan: Plan) -> str:
    return f"{plan.method.name} {plan.method.version}"


def _memory(cache: Path, plan: Plan, device: str) -> Path:
    versions = package_versions()
    about = {
        "cores": available_cores(),
        "asked": [os.environ.get(variable) for variable in DECIDERS],
        "torch": versions["torch"],
        "gcdbench": versions["gcdbench"],
        "device": device,
        "backbone": plan.settings.backbone,
        "image_size": plan.settings.image_size,
        "precision": plan.settings.precision,
    }
    return memory_file(cache, about)


class _Watch:
    """Notes the seconds at the events of a run."""

    def __init__(self, device: str) -> None:
        self.now = time.process_time if device == "cpu" else time.perf_counter
        self.views: list[float] = []
        self.epochs: list[float] = []

    def __call__(self, said: Mapping[str, Any]) -> None:
        event = make_event(said)
        if isinstance(event, Progress) and event.task == "view bank":
            self.views.append(self.now())
        elif isinstance(event, EpochEnd):
            self.epochs.append(self.now())


def _try_out(plan: Plan, manager: PluginManager, device: str) -> Speed:
    from gcdbench.training.context import RunContext

    size = plan.settings.image_size
    count = max(IMAGES * 128**2 // max(size, 128) ** 2, CLASSES * 2)
    side = stored_side(size)
    pixels = np.random.default_rng(0).integers(0, 256, (count, side, side, 3), dtype=np.uint8)
    watch = _Watch(device)
    backbone = manager.get("backbones", plan.settings.backbone).load()(plan.settings.weights)
    context = RunContext(
        seed=0,
        image_size=size,
        device=device,
        precision=plan.settings.precision,
        training=TrainingConfig(epochs=3, batch_size=count),
        views=f"bank:{VIEWS}",
        load_backbone=lambda: backbone,
        log=watch,
    )
    ids = np.arange(count)
    labelled = ids[ids % 4 == 0]
    data = GCDData(
        labelled=ImageSet(ids=labelled, store=pixels),
        labels=labelled // 4 % (CLASSES // 2),
        unlabelled=ImageSet(ids=ids[ids % 4 != 0], store=pixels),
    )
    task = TaskInfo(k_old=CLASSES // 2, k=CLASSES, image_size=size)
    method = plan.method.load()(plan.config, task, context)
    method.fit(data)
    started = watch.now()
    method.predict(data.unlabelled)
    predicted = watch.now() - started
    channels, height, width = method.views.test(ids[:1]).shape[1:]
    return Speed(
        view=(watch.views[-1] - watch.views[0]) / (count * VIEWS),
        # The first epoch pays for what is allocated once, and sometimes the second, too.
        step=min(watch.epochs[1] - watch.epochs[0], watch.epochs[2] - watch.epochs[1]) / count,
        predict=predicted / len(data.unlabelled),
        height=int(height),
        width=int(width),
        channels=int(channels),
    )


if __name__ == "__main__":
    main()
