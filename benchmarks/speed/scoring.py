"""Scoring many predictions against the published per-sample loop."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.speed.metrics import loop_accuracy
from gcdbench.metrics.builtin import gcdbench_metrics


def measure(samples: list[int], classes: int = 100) -> list[dict[str, float]]:
    """For each size: seconds of the headline accuracy, of all metrics, and of the loop."""
    specs = {spec.name: spec for spec in gcdbench_metrics()}
    headline = specs["accuracy"]
    rng = np.random.default_rng(0)
    for spec in specs.values():  # imports and first calls are not what is measured
        spec.load()(np.array([0, 1]), np.array([1, 0]), np.array([True, False]), True)
    rows = []
    for count in samples:
        y_true = rng.integers(0, classes, count)
        cluster = np.where(rng.random(count) < 0.6, y_true, rng.integers(0, classes, count))
        is_old = np.arange(classes) < classes // 2
        started = time.perf_counter()
        headline.load()(y_true, cluster, is_old, True)
        one = time.perf_counter() - started
        started = time.perf_counter()
        for spec in specs.values():
            spec.load()(y_true, cluster, is_old, True)
        every = time.perf_counter() - started
        started = time.perf_counter()
        loop_accuracy(y_true, cluster, is_old)
        loop = time.perf_counter() - started
        rows.append({"samples": count, "headline": one, "all_metrics": every, "loop": loop})
    return rows
