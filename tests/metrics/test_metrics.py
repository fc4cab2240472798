"""Metrics against brute force, scikit-learn and properties that must hold for any input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from gcdbench.metrics.accuracy import accuracy, assert_identity, old_share
from gcdbench.metrics.accuracy_anchored import accuracy_anchored
from gcdbench.metrics.accuracy_balanced import accuracy_balanced
from gcdbench.metrics.accuracy_v1 import accuracy_v1
from gcdbench.metrics.ari import ari
from gcdbench.metrics.assignment import confusion_matrix, contingency, match
from gcdbench.metrics.builtin import gcdbench_metrics
from gcdbench.metrics.chance_level import chance_level
from gcdbench.metrics.cluster_count import cluster_count
from gcdbench.metrics.decomposition import TERMS, error_decomposition
from gcdbench.metrics.nmi import nmi
from gcdbench.metrics.ties import ties
from tests.metrics.problems import problems

UNANCHORED = [
    accuracy,
    accuracy_v1,
    accuracy_balanced,
    error_decomposition,
    nmi,
    ari,
    cluster_count,
    chance_level,
    ties,
]


def best_by_brute_force(y_true, cluster):
    """Most samples right under any one-to-one map of clusters to classes, by trying all of them."""
    classes, clusters = sorted(set(y_true)), sorted(set(cluster))
    size = max(len(classes), len(clusters))
    best = 0
    for chosen in itertools.permutations(range(size), len(clusters)):
        name = {k: classes[c] if c < len(classes) else None for k, c in zip(clusters, chosen, strict=True)}
        best = max(best, sum(name[k] == t for t, k in zip(y_true, cluster, strict=True)))
    return best


@given(problems(max_classes=5, max_clusters=5))
@settings(max_examples=80, deadline=None)
def test_all_equals_the_best_of_all_assignments(problem):
    y_true, cluster, is_old = problem
    expected = 100 * best_by_brute_force(y_true.tolist(), cluster.tolist()) / len(y_true)
    assert accuracy(y_true, cluster, is_old)["all"] == pytest.approx(expected)


@given(problems())
@settings(max_examples=100, deadline=None)
def test_all_is_the_weighted_mean_of_old_and_new(problem):
    y_true, cluster, is_old = problem
    w = old_share(y_true, is_old)
    for metric, prefix in ((accuracy, ""), (accuracy_v1, "v1_"), (chance_level, "chance_")):
        scores = metric(y_true, cluster, is_old)
        assert (prefix + "old" in scores) == (w > 0)
        assert (prefix + "new" in scores) == (w < 1)
        assert_identity(scores[prefix + "all"], scores.get(prefix + "old"), scores.get(prefix + "new"), w)


@given(problems())
@settings(max_examples=100, deadline=None)
def test_all_and_the_four_errors_sum_to_100(problem):
    y_true, cluster, is_old = problem
    scores = accuracy(y_true, cluster, is_old)
    errors = error_decomposition(y_true, cluster, is_old)
    assert scores["all"] + sum(errors[term] for term in TERMS) == pytest.approx(100)
    w = old_share(y_true, is_old)
    old_side = errors["true_old_confusion"] + errors["false_new"]
    assert old_side == pytest.approx(w * (100 - scores.get("old", 100)))


@given(problems(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_renaming_clusters_changes_nothing(problem, random):
    y_true, cluster, is_old = problem
    names = list(range(20))
    random.shuffle(names)
    renamed = np.array(names)[cluster]
    for metric in UNANCHORED:
        assert metric(y_true, renamed, is_old) == metric(y_true, cluster, is_old), metric.__name__


@given(problems(), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_order_of_samples_changes_nothing(problem, random):
    y_true, cluster, is_old = problem
    order = list(range(len(y_true)))
    random.shuffle(order)
    for metric in UNANCHORED:
        assert metric(y_true[order], cluster[order], is_old) == metric(y_true, cluster, is_old)


@given(problems())
@settings(max_examples=100, deadline=None)
def test_nmi_and_ari_agree_with_scikit_learn(problem):
    y_true, cluster, is_old = problem
    assert nmi(y_true, cluster, is_old)["nmi"] == pytest.approx(
        100 * normalized_mutual_info_score(y_true, cluster), abs=1e-6
    )
    assert ari(y_true, cluster, is_old)["ari"] == pytest.approx(100 * adjusted_rand_score(y_true, cluster), abs=1e-6)


@given(problems())
@settings(max_examples=80, deadline=None)
def test_v1_is_never_below_v2_and_contingency_counts_pairs(problem):
    y_true, cluster, is_old = problem
    assert accuracy_v1(y_true, cluster, is_old)["v1_all"] >= accuracy(y_true, cluster, is_old)["all"] - 1e-9
    table = contingency(y_true, cluster, is_old.size)
    expected = np.zeros_like(table.counts)
    for t, k in zip(y_true, cluster, strict=True):
        expected[t, k] += 1
    np.testing.assert_array_equal(table.counts, expected)


def test_a_worked_example():
    # classes 0, 1 old; 2, 3 new. Cluster 7 is class 0, 5 is class 1, 9 is class 2, and class 3 fell into 7.
    y_true = np.array([0, 0, 0, 0, 1, 1, 2, 2, 3, 3])
    cluster = np.array([7, 7, 7, 5, 5, 5, 9, 7, 7, 8])
    is_old = [True, True, False, False]
    assert accuracy(y_true, cluster, is_old) == pytest.approx({"all": 70.0, "old": 500 / 6, "new": 50.0})
    assert error_decomposition(y_true, cluster, is_old) == pytest.approx(
        {"true_old_confusion": 10.0, "false_new": 0.0, "false_old": 20.0, "true_new_confusion": 0.0}
    )
    assert accuracy_balanced(y_true, cluster, is_old) == pytest.approx(
        {"balanced_all": (75 + 100 + 50 + 50) / 4, "balanced_old": 87.5, "balanced_new": 50.0}
    )
    assert cluster_count(y_true, cluster, is_old) == {"k_used": 4.0, "k_error": 0.0}
    # Matched apart, cluster 7 may serve the old class 0 and a new class; 2 of 4 new samples are right either way.
    assert accuracy_v1(y_true, cluster, is_old)["v1_new"] == pytest.approx(50.0)


def test_v1_flatters_a_cluster_shared_by_an_old_and_a_new_class():
    y_true, cluster = np.array([0, 0, 0, 1, 1]), np.zeros(5, dtype=int)
    assert accuracy(y_true, cluster, [True, False])["all"] == pytest.approx(60)
    assert accuracy_v1(y_true, cluster, [True, False]) == {"v1_all": 100.0, "v1_old": 100.0, "v1_new": 100.0}


def test_more_clusters_than_classes_count_as_new():
    y_true = np.array([0] * 5 + [1] * 5)
    cluster = np.array([0, 0, 0, 2, 2, 1, 1, 1, 3, 3])
    errors = error_decomposition(y_true, cluster, [True, False])
    assert errors == {"true_old_confusion": 0.0, "false_new": 20.0, "false_old": 0.0, "true_new_confusion": 20.0}
    matrix = confusion_matrix(y_true, cluster, 2)
    np.testing.assert_array_equal(matrix, [[3, 0, 2], [0, 3, 2]])


def test_fewer_clusters_than_classes_leave_a_class_without_any():
    y_true = np.array([0, 0, 1, 2])
    assert accuracy(y_true, np.zeros(4, dtype=int), [True, False, False]) == {"all": 50.0, "old": 100.0, "new": 0.0}


def test_huge_cluster_ids_take_no_huge_table():
    y_true = np.array([0, 0, 1, 1])
    cluster = np.array([10**12, 10**12, 3, 3])
    assert accuracy(y_true, cluster, [True, False])["all"] == 100
    assert contingency(y_true, cluster, 2).cluster_ids.tolist() == [3, 10**12]


def test_plain_accuracy_needs_anchored_clusters_and_does_not_forgive_a_swap():
    # Old classes 1 and 3 are clusters 0 and 1, in order; new classes 0 and 2 are any others.
    is_old = [False, True, False, True]
    y_true = np.array([1, 1, 3, 3, 0, 0, 2, 2])
    right = np.array([0, 0, 1, 1, 5, 5, 4, 4])
    swapped = np.array([1, 1, 0, 0, 5, 5, 4, 1])
    assert accuracy_anchored(y_true, right, is_old) == {}
    assert accuracy_anchored(y_true, right, is_old, anchored=True) == {
        "anchored_all": 100.0,
        "anchored_new": 100.0,
        "plain_old": 100.0,
    }
    assert accuracy(y_true, swapped, is_old)["old"] == 100
    assert accuracy_anchored(y_true, swapped, is_old, anchored=True) == {
        "anchored_all": 37.5,
        "anchored_new": 75.0,
        "plain_old": 0.0,
    }


@given(problems())
@settings(max_examples=100, deadline=None)
def test_anchored_accuracy_by_loops(problem):
    y_true, cluster, is_old = problem
    scores = accuracy_anchored(y_true, cluster, is_old, anchored=True)
    old_classes = [c for c in range(len(is_old)) if is_old[c]]
    old_samples = [(t, k) for t, k in zip(y_true.tolist(), cluster.tolist(), strict=True) if is_old[t]]
    if old_samples:
        right = sum(k < len(old_classes) and old_classes[k] == t for t, k in old_samples)
        assert scores["plain_old"] == pytest.approx(100 * right / len(old_samples))
    else:
        assert "plain_old" not in scores
    assert scores["anchored_all"] <= accuracy(y_true, cluster, is_old)["all"] + 1e-9


@pytest.mark.parametrize(("k", "n", "level"), [(8, 200, 22.1), (8, 2000, 15.2), (10, 300, 18.6), (100, 4500, 5.8)])
def test_chance_level_is_that_of_shuffled_predictions(k, n, level):
    """Levels from an independent simulation with uniformly random predictions."""
    rng = np.random.default_rng(3)
    y_true = np.arange(n) % k
    cluster = rng.integers(0, k, n)
    is_old = np.arange(k) < k // 2
    found = chance_level(y_true, cluster, is_old)["chance_all"]
    assert found == pytest.approx(level, abs=1.0)
    shuffled = [accuracy(y_true, rng.permutation(cluster), is_old)["all"] for _ in range(40)]
    assert found == pytest.approx(np.mean(shuffled), abs=0.8)


@pytest.mark.parametrize(
    ("y_true", "cluster", "message"),
    [
        ([], [], "nothing to score"),
        ([0, 1], [0], "2 samples, cluster has 1"),
        ([0, 2], [0, 0], "only 2 classes"),
        ([0, -1], [0, 0], "negative"),
        ([0, 1], [0, -1], "negative"),
        ([0.0, 1.0], [0, 1], "integers"),
        ([[0, 1]], [[0, 1]], "one-dimensional"),
    ],
)
def test_bad_input_is_a_clear_error(y_true, cluster, message):
    for metric in UNANCHORED:
        with pytest.raises(ValueError, match=message):
            metric(np.array(y_true, dtype=None if y_true else int), np.array(cluster, dtype=int), [True, False])


def test_identity_is_refused_when_it_does_not_hold():
    assert_identity(50.0, 100.0, 0.0, 0.5)
    with pytest.raises(AssertionError, match="w\\*Old"):
        assert_identity(24.6, 22.6, 21.5, 0.44)


def test_ties_are_broken_the_same_way_whatever_the_names():
    counts = np.array([[1, 1], [1, 1]])
    assert sorted(match(counts).tolist()) == [0, 1]


def test_every_registered_metric_loads_and_keys_do_not_collide():
    rng = np.random.default_rng(0)
    y_true, cluster = rng.integers(0, 8, 300), rng.integers(0, 9, 300)
    seen: set[str] = set()
    for spec in gcdbench_metrics():
        scores = spec.load()(y_true, cluster, np.arange(8) < 4, True)
        assert scores
        assert not seen & scores.keys()
        described = {score.key: score for score in spec.describe()}
        assert scores.keys() == described.keys(), f"{spec.name} describes other scores than it returns"
        assert all(described[key].clipped(value) == value for key, value in scores.items())
        assert all(isinstance(value, float) and np.isfinite(value) for value in scores.values())
        seen |= scores.keys()
