"""Time scoring against the per-sample loop of published GCD code.

    python benchmarks/speed/metrics.py [--samples 1000000] [--classes 100] [--loop]

The loop is written here from its description: a square matrix filled sample by sample, one assignment on it.
"""

from __future__ import annotations

import argparse
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--loop", action="store_true", help="also time the per-sample loop and compare the result")
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    y_true = rng.integers(0, options.classes, options.samples)
    noise = rng.integers(0, options.classes, options.samples)
    cluster = np.where(rng.random(options.samples) < 0.6, y_true, noise)
    is_old = np.arange(options.classes) < options.classes // 2

    total = 0.0
    fast: dict[str, float] = {}
    for spec in gcdbench_metrics():
        metric = spec.load()
        start = time.perf_counter()
        scores = metric(y_true, cluster, is_old, True)
        took = time.perf_counter() - start
        total += took
        fast |= scores
        print(f"{spec.name:22s} {1000 * took:8.1f} ms")
    print(f"{'all metrics':22s} {1000 * total:8.1f} ms   ({options.samples:,} samples, K = {options.classes})")

    if options.loop:
        start = time.perf_counter()
        slow = loop_accuracy(y_true, cluster, is_old)
        took = time.perf_counter() - start
        same = all(abs(slow[key] - fast[key]) < 1e-9 for key in slow)
        print(f"{'per-sample loop':22s} {1000 * took:8.1f} ms   headline only, same result: {same}")


if __name__ == "__main__":
    main()
