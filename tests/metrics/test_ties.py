"""Ties against all maps there are, and the limits of what can be decided exactly."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from gcdbench.metrics.accuracy import accuracy
from gcdbench.metrics.ties import best_map, ties
from tests.metrics.problems import problems


def best_maps(y_true: list[int], cluster: list[int], n_classes: int) -> list[set[int]]:
    """The samples that are right under each one-to-one map with the most right samples, by trying all maps."""
    found = sorted(set(cluster))
    size = max(n_classes, len(found))
    right_sets = []
    for chosen in itertools.permutations(range(size), len(found)):
        named = dict(zip(found, chosen, strict=True))
        right_sets.append({i for i, (t, j) in enumerate(zip(y_true, cluster, strict=True)) if named[j] == t})
    most = max(map(len, right_sets))
    return [right for right in right_sets if len(right) == most]


@given(problems(max_classes=5, max_clusters=5, max_samples=14))
@settings(max_examples=150, deadline=None)
def test_ties_and_ranges_are_those_of_all_best_maps(problem):
    y_true, cluster, is_old = problem
    found = ties(y_true, cluster, is_old)
    maps = best_maps(y_true.tolist(), cluster.tolist(), len(is_old))
    assert found["ties"] == (len({frozenset(right) for right in maps}) > 1)
    for name, part in (("old", is_old[y_true]), ("new", ~is_old[y_true])):
        if not part.any():
            assert f"{name}_low" not in found
            continue
        shares = [100 * sum(part[i] for i in right) / part.sum() for right in maps]
        assert found[f"{name}_low"] == pytest.approx(min(shares))
        assert found[f"{name}_high"] == pytest.approx(max(shares))


@given(problems())
@settings(max_examples=100, deadline=None)
def test_the_headline_lies_in_the_range_and_without_ties_the_range_is_a_point(problem):
    y_true, cluster, is_old = problem
    scores, found = accuracy(y_true, cluster, is_old), ties(y_true, cluster, is_old)
    for part in ("old", "new"):
        if part in scores:
            assert found[f"{part}_low"] - 1e-9 <= scores[part] <= found[f"{part}_high"] + 1e-9
            if not found["ties"]:
                assert found[f"{part}_low"] == found[f"{part}_high"] == scores[part]


def test_a_tie_that_moves_old_by_far():
    # 9 images of an old and 9 of a new class, divided 6 to 3 in the same way over two clusters.
    y_true = np.repeat([0, 1], 9)
    cluster = np.tile([0] * 6 + [1] * 3, 2)
    found = ties(y_true, cluster, [True, False])
    assert found == pytest.approx(
        {"ties": 1, "old_low": 100 / 3, "old_high": 200 / 3, "new_low": 100 / 3, "new_high": 200 / 3}
    )


@pytest.mark.parametrize("million", [1, 10])
def test_the_second_weight_decides_among_best_maps_only_however_many_samples(million):
    """One sample more on the diagonal must outweigh any number of old samples beside it, also in floating point."""
    n = million * 10**6
    counts = np.array([[n + 1, n, 0], [n, n, 0], [0, 0, 3]])
    for second in (counts, -counts, np.array([[0, n, 0], [n, 0, 0], [0, 0, 0]])):
        rows, columns = best_map(counts, second)
        assert counts[rows, columns].sum() == 2 * n + 4


def test_nothing_is_said_where_sums_would_no_longer_be_exact():
    counts = np.array([[10**9, 1], [1, 10**9]])
    assert best_map(counts, counts) is None
