"""Errors by the head against loops that try every map, and properties that must hold for any input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcdbench.metrics.accuracy_anchored import accuracy_anchored
from gcdbench.metrics.decomposition import error_decomposition
from gcdbench.metrics.decomposition_head import error_decomposition_head
from gcdbench.metrics.error_terms import HEAD_TERMS, TERMS
from tests.metrics.problems import problems


def by_loops(y_true: list[int], cluster: list[int], is_old: list[bool]) -> dict[str, float]:
    """The four shares from the definition: one sample after another, under the best of all maps of free clusters."""
    old = [c for c, flag in enumerate(is_old) if flag]
    new = [c for c, flag in enumerate(is_old) if not flag]
    free = sorted({j for j in cluster if j >= len(old)})
    best, right = {}, -1
    targets = new + [None] * len(free)  # a cluster may stand for no class
    for chosen in itertools.permutations(range(len(targets)), len(free)):
        named = dict(zip(free, (targets[i] for i in chosen), strict=True))
        hits = sum(named.get(j) == t for t, j in zip(y_true, cluster, strict=True))
        if hits > right:
            best, right = named, hits
    counts = dict.fromkeys(HEAD_TERMS, 0)
    for t, j in zip(y_true, cluster, strict=True):
        if is_old[t] and j < len(old):
            counts["head_true_old_confusion"] += old[j] != t
        elif is_old[t]:
            counts["head_false_new"] += 1
        elif j < len(old):
            counts["head_false_old"] += 1
        else:
            counts["head_true_new_confusion"] += best[j] != t
    return {name: 100 * count / len(y_true) for name, count in counts.items()}


@given(problems(max_classes=5, max_clusters=6, max_samples=25))
@settings(max_examples=120, deadline=None)
def test_every_term_is_what_its_definition_says(problem):
    y_true, cluster, is_old = problem
    found = error_decomposition_head(y_true, cluster, is_old, anchored=True)
    assert found == pytest.approx(by_loops(y_true.tolist(), cluster.tolist(), is_old.tolist()))


@given(problems())
@settings(max_examples=100, deadline=None)
def test_the_four_terms_and_anchored_all_sum_to_100(problem):
    y_true, cluster, is_old = problem
    errors = error_decomposition_head(y_true, cluster, is_old, anchored=True)
    right = accuracy_anchored(y_true, cluster, is_old, anchored=True)["anchored_all"]
    assert right + sum(errors.values()) == pytest.approx(100)


@given(problems(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_renaming_clusters_that_are_tied_to_no_class_changes_nothing(problem, random):
    y_true, cluster, is_old = problem
    tied = int(is_old.sum())
    names = list(range(tied, 20))
    random.shuffle(names)
    renamed = np.array([*range(tied), *names])[cluster]
    before = error_decomposition_head(y_true, cluster, is_old, anchored=True)
    assert error_decomposition_head(y_true, renamed, is_old, anchored=True) == before


def test_an_old_class_bias_that_the_map_hides():
    # Cluster 0 was trained as the old class 0 and cluster 1 as the old class 1, but nearly all of the new class fell
    # into cluster 0, and the old class 0 into cluster 2. The map calls that right.
    y_true = np.array([0] * 4 + [1] * 4 + [2] * 12)
    cluster = np.array([2] * 4 + [1] * 4 + [0] * 11 + [2])
    is_old = [True, True, False]
    assert error_decomposition(y_true, cluster, is_old)["false_old"] == pytest.approx(100 * 1 / 20)
    by_head = error_decomposition_head(y_true, cluster, is_old, anchored=True)
    assert by_head == pytest.approx(dict(zip(HEAD_TERMS, (0.0, 100 * 4 / 20, 100 * 11 / 20, 0.0), strict=True)))


def test_nothing_is_said_of_clusters_that_no_class_was_tied_to():
    assert error_decomposition_head([0, 1], [0, 1], [True, False]) == {}


def test_both_decompositions_have_the_same_four_terms_in_the_same_order():
    assert tuple(f"head_{term}" for term in TERMS) == HEAD_TERMS
