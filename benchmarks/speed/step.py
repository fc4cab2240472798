"""Where a training step's time goes, and how far it is from its matrix products alone.

python -m benchmarks.speed.step '{"folder": "...", "cache": "..."}'
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.speed.ours import TimedSimGCD, make_context, split
from benchmarks.speed.settings import Settings, parse_settings
from gcdbench.models.products import onednn_multiply
from gcdbench.training.batch import Batch
from gcdbench.training.context import RunContext
from gcdbench.views.bank import open_views

Multiply = Callable[[Tensor, Tensor], Any]
Shapes = Counter[tuple[str, Any]]

ONEDNN = "mkldnn::_linear_pointwise"
MATRIX: dict[str, Multiply] = {
    "aten::mm": torch.mm,
    "aten::addmm": torch.mm,
    "aten::bmm": torch.bmm,
    ONEDNN: onednn_multiply,
}
PRODUCTS = (*MATRIX, "aten::mkldnn_convolution", "aten::convolution_backward")


class ProfiledSimGCD(TimedSimGCD):
    """Records what happens between the end of the warm-up and the end of the last step."""

    def __init__(self, settings: Settings, context: RunContext) -> None:
        super().__init__(settings, context)
        self.warmup = settings.warmup
        self.steps = settings.steps
        self.recorder = profile(activities=[ProfilerActivity.CPU], record_shapes=True)
        self.recorded = 0.0

    def after_step(self, batch: Batch) -> None:
        """Start and stop the recording."""
        super().after_step(batch)
        if len(self.times) == self.warmup:
            self.recorder.start()
            self.recorded = -time.perf_counter()
        if len(self.times) == self.warmup + self.steps:
            self.recorded += time.perf_counter()
            self.recorder.stop()


def summarise(method: ProfiledSimGCD) -> tuple[dict[str, float], Shapes]:
    """Shares of the recorded time by kind of work, and the matrix products with the shapes of their factors."""
    products = 0.0
    shapes: Shapes = Counter()
    for event in method.recorder.events():  # type: ignore[no-untyped-call]
        if event.name in PRODUCTS:
            products += event.self_cpu_time_total / 1e6
        if event.name in MATRIX:
            factors = [tuple(size) for size in event.input_shapes if len(size) >= 2][-2:]
            if event.name == ONEDNN:  # it is given the transpose of the second
                factors[1] = factors[1][::-1]
            shapes[event.name, tuple(factors)] += 1
    share = products / method.recorded
    # Whatever is left, whether torch knows of it or not: norms, fetching views, Python, the profiler itself.
    return {"products": share, "other": 1 - share}, shapes


def time_products(shapes: Shapes, repeats: int, multiply: Multiply | None = None) -> float:
    """Seconds that the recorded matrix products take alone, one after the other, on fresh memory of the same size.

    multiply: another library's; without it each product is computed as it was in the step.
    """
    work: list[tuple[Callable[[], Any], int]] = []
    for (name, sizes), count in shapes.items():
        left, right = (torch.rand(size) for size in sizes)
        work.append((partial(multiply or MATRIX[name], left, right), count))
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        for call, count in work:
            for _ in range(count):
                call()
        best = min(best, time.perf_counter() - started)
    return best


def multiply_by_numpy(left: Tensor, right: Tensor) -> NDArray[np.float32]:
    """By numpy's BLAS library; torch brings one of its own."""
    product: NDArray[np.float32] = np.matmul(left.numpy(), right.numpy())
    return product


def measure(settings: Settings) -> dict[str, Any]:
    """Shares of a step and its ratio to the matrix products alone, in one thread."""
    side = round(settings.image_size / 0.875)
    pixels = np.random.default_rng(0).integers(0, 256, (settings.images, side, side, 3), dtype=np.uint8)
    data = split(pixels)
    context = make_context(settings, f"random-{settings.images}")
    open_views(context, pixels).start_epoch(0)
    method = TimedSimGCD(settings, context)
    method.fit(data)
    step = float(np.median(np.diff(method.times[settings.warmup - 1 :])))
    profiled = ProfiledSimGCD(settings, make_context(settings, f"random-{settings.images}"))
    profiled.fit(data)
    shares, shapes = summarise(profiled)
    alone = time_products(shapes, repeats=3) / settings.steps
    return {
        "step": step,
        "products_alone": alone,
        "ratio": step / alone,
        "products_by_blas": time_products(shapes, 3, torch.matmul) / settings.steps,
        "products_by_numpy": time_products(shapes, 3, multiply_by_numpy) / settings.steps,
        "shares": shares,
    }


def main() -> None:
    """Print the measurement."""
    settings = parse_settings()
    torch.set_num_threads(settings.threads)
    Path(settings.cache).mkdir(parents=True, exist_ok=True)
    print(json.dumps(measure(settings)))


if __name__ == "__main__":
    main()
