"""Estimates of K: on clusters that can be counted, at the edges, and blind to what they must not see."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import fminbound, linear_sum_assignment

from gcdbench.core.arrays import IntArray
from gcdbench.methods.algorithms.clustering import Floats, constrained_kmeans
from gcdbench.methods.algorithms.estimate_k import (
    ESTIMATORS,
    Sample,
    estimate_by_gcd,
    estimate_by_granularity,
    estimate_k,
    matched_share,
    prepare_sample,
)
from gcdbench.methods.builtin import METHODS
from gcdbench.plugins.specs import MethodSpec, load_attribute
from gcdbench.testing.tiny import shrink, tiny_context, tiny_task
from gcdbench.views.bank import frozen_features


def task(
    classes: int, k_old: int, each: int = 30, spread: float = 0.35, seed: int = 0
) -> tuple[Floats, IntArray, Floats]:
    """Features around random directions: labelled, their labels, unlabelled (half of the old, all of the new)."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(classes), each)
    points = (rng.normal(size=(classes, 40))[truth] + spread * rng.normal(size=(len(truth), 40))).astype(np.float32)
    given = (truth < k_old) & (np.arange(len(truth)) % 2 == 0)
    return points[given], truth[given], points[~given]


@pytest.mark.parametrize(("classes", "k_old"), [(6, 3), (9, 5), (12, 4), (5, 5)])
def test_well_separated_classes_are_counted(classes: int, k_old: int) -> None:
    assert estimate_k(*task(classes, k_old), k_old, np.random.default_rng(0)) == pytest.approx(classes, abs=1)


@pytest.mark.parametrize(("classes", "k_old", "spread"), [(6, 4, 0.35), (9, 3, 1.0), (5, 2, 2.0)])
def test_gcd_s_search_is_scipy_s_over_the_labelled_accuracy(classes: int, k_old: int, spread: float) -> None:
    labelled, labels, unlabelled = task(classes, k_old, spread=spread)
    sample = prepare_sample(labelled, labels, unlabelled, k_old)
    made = estimate_by_gcd(sample, np.random.default_rng(0))
    rows = np.concatenate([sample.labelled, sample.unlabelled])
    seed = int(np.random.default_rng(0).integers(2**31))

    tried = set()

    def negative_accuracy(value: float) -> float:
        tried.add(int(value))
        found = constrained_kmeans(rows, int(value), np.random.default_rng(seed), n_init=5).cluster[: len(labels)]
        counts = np.zeros((k_old, int(value)), dtype=int)
        for label, cluster in zip(labels, found, strict=True):
            counts[label, cluster] += 1
        return -float(counts[linear_sum_assignment(-counts)].sum()) / len(labels)

    best, value, _, _ = fminbound(negative_accuracy, k_old, min(1000, len(rows) // 2), xtol=1e-5, full_output=True)
    assert dict(made.trials)[made.k] == pytest.approx(-value)
    # Of several K with one accuracy the smallest is taken; scipy keeps the last it saw.
    assert made.k <= int(best)
    # Nothing else is tried, above all not the lower bound: the published search does not either.
    assert {k for k, _ in made.trials} == tried


def test_granularity_takes_the_smallest_k_that_fits() -> None:
    sample = prepare_sample(*task(8, 3, spread=0.8), 3)
    made = estimate_by_granularity(sample, np.random.default_rng(0))
    assert made.target is not None
    tried = dict(made.trials)
    assert tried[made.k] <= made.target
    assert all(score > made.target for k, score in tried.items() if k < made.k)


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_estimates_stay_within_bounds_on_very_little(name: str) -> None:
    rng = np.random.default_rng(0)
    for unlabelled in (0, 1, 3):
        sample = prepare_sample(
            rng.normal(size=(2, 5)).astype(np.float32),
            np.array([0, 1]),
            rng.normal(size=(unlabelled, 5)).astype(np.float32),
            2,
        )
        assert 2 <= ESTIMATORS[name](sample, rng).k <= max(2, (2 + unlabelled) // 2)
    equal = prepare_sample(
        np.ones((4, 3), dtype=np.float32), np.array([0, 0, 1, 1]), np.ones((20, 3), dtype=np.float32), 2
    )
    assert 2 <= ESTIMATORS[name](equal, rng).k <= (2 if name == "granularity" else 12)


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_one_generator_one_estimate(name: str) -> None:
    sample = prepare_sample(*task(6, 3, spread=1.0), 3)
    first, second = (ESTIMATORS[name](sample, np.random.default_rng(4)) for _ in range(2))
    assert first == second


def test_principal_components_keep_all_distances_when_nothing_is_cut() -> None:
    labelled, labels, unlabelled = task(4, 2)
    whole = prepare_sample(labelled, labels, unlabelled, 2, dimensions=100)
    rotated = prepare_sample(labelled, labels, unlabelled, 2, dimensions=39)

    def distances(sample: Sample) -> Floats:
        rows = np.concatenate([sample.labelled, sample.unlabelled])
        return np.linalg.norm(rows[:, None] - rows[None], axis=2)

    assert np.allclose(np.linalg.norm(whole.labelled, axis=1), 1.0, atol=1e-5)
    assert np.allclose(distances(whole), distances(rotated), atol=0.05)


def test_the_matched_share_is_the_best_of_all_maps() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        labels, cluster = rng.integers(0, 3, 15), rng.integers(0, 4, 15)
        best = max(
            sum(which[y] == c for y, c in zip(labels, cluster, strict=True))
            for which in itertools.permutations(range(4), 3)
        )
        assert matched_share(labels, cluster, 3) == pytest.approx(best / 15)


@pytest.mark.parametrize("spec", [spec for spec in METHODS if spec.trained], ids=lambda spec: spec.name)
def test_every_method_estimates_on_features_that_no_label_has_shaped(spec: MethodSpec) -> None:
    """Training pulls labelled images of a class together, and then the others seem to need many more clusters."""
    data, task, _ = tiny_task(images=80, k_known=False)
    ctx = tiny_context(epochs=6)
    features = frozen_features(ctx, data.labelled), frozen_features(ctx, data.unlabelled)
    expected = estimate_k(features[0], data.labels, features[1], task.k_old, ctx.rng("estimate-k"))
    assert spec.config is not None
    method = shrink(spec.load())(load_attribute(spec.config)(), task, ctx)
    method.fit(data)
    assert method.predict(data.unlabelled).k_hat == expected
