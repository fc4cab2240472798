"""Scoring many predictions against the per-sample loop of published GCD code.

The loop is written here from its description: a square matrix filled sample by sample, one assignment on it.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.optimize import linear_sum_assignment

from gcdbench.metrics.builtin import gcdbench_metrics


def loop_accuracy(y_true: np.ndarray, cluster: np.ndarray, is_old: np.ndarray) -> dict[str, float]:
    """v2 accuracy the slow way: three Python loops over samples."""
    size = int(max(y_true.max(), cluster.max())) + 1
    matrix = np.zeros((size, size), dtype=int)
    for i in range(len(y_true)):
        matrix[cluster[i], y_true[i]] += 1
    rows, columns = linear_sum_assignment(matrix.max() - matrix)
    class_of = dict(zip(rows, columns, strict=True))
    right = old_right = n_old = 0
    for i in range(len(y_true)):
        hit = class_of[cluster[i]] == y_true[i]
        right += hit
        if is_old[y_true[i]]:
            n_old += 1
            old_right += hit
    n_new = len(y_true) - n_old
    return {
        "all": 100 * right / len(y_true),
        "old": 100 * old_right / n_old,
        "new": 100 * (right - old_right) / n_new,
    }


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
        fast = headline.load()(y_true, cluster, is_old, True)
        one = time.perf_counter() - started
        started = time.perf_counter()
        for spec in specs.values():
            spec.load()(y_true, cluster, is_old, True)
        every = time.perf_counter() - started
        started = time.perf_counter()
        slow = loop_accuracy(y_true, cluster, is_old)
        loop = time.perf_counter() - started
        if not np.isclose([fast[name] for name in slow], list(slow.values())).all():
            raise SystemExit(f"The two ways of scoring {count} predictions disagree: {fast}, {slow}.")
        rows.append({"samples": count, "headline": one, "all_metrics": every, "loop": loop})
    return rows
