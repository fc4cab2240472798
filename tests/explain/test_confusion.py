"""Confused images and class pairs, against a count by hand and by brute force."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from gcdbench.reporting.explain.confusion import (
    assigned_classes,
    most_confused_images,
    most_confused_pairs,
    old_and_new_examples,
    pair_examples,
)
from gcdbench.runs.predictions import ScoredSet


def scored(
    y_true: list[int], cluster: list[int], k_old: int, classes: int, confidence: list[float] | None
) -> ScoredSet:
    return ScoredSet(
        ids=np.arange(len(y_true)) + 100,
        cluster=np.asarray(cluster),
        y_true=np.asarray(y_true),
        group=np.arange(len(y_true)),
        is_old=np.arange(classes) < k_old,
        anchored=True,
        k_hat=classes,
        confidence=None if confidence is None else np.asarray(confidence, dtype=np.float32),
    )


TRUTH = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
#        old classes 0, 1; new classes 2, 3. Clusters are the classes renamed: 0->2, 1->0, 2->3, 3->1.
CLUSTER = [2, 2, 3, 0, 0, 0, 3, 3, 2, 1, 1, 2]
CONFIDENCE = [0.9, 0.8, 0.7, 0.9, 0.8, 0.7, 0.9, 0.8, 0.95, 0.9, 0.8, 0.6]


def example(confidence: list[float] | None = CONFIDENCE) -> ScoredSet:
    return scored(TRUTH, CLUSTER, 2, 4, confidence)


def test_assignment_is_the_best_of_all_permutations() -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), 10)
    cluster = np.where(rng.random(40) < 0.7, (truth + 1) % 4, rng.integers(4, size=40))
    assigned = assigned_classes(scored(truth.tolist(), cluster.tolist(), 2, 4, None))
    best = max(int(np.sum(np.asarray(order)[cluster] == truth)) for order in permutations(range(4)))
    assert int(np.sum(assigned == truth)) == best


def test_clusters_left_over_are_no_class() -> None:
    assigned = assigned_classes(scored([0, 0, 0, 1, 1], [0, 0, 7, 1, 1], 1, 2, None))
    assert assigned.tolist() == [0, 0, -1, 1, 1]


def test_the_most_confidently_wrong_come_first() -> None:
    assert most_confused_images(example(), 10).tolist() == [8, 2, 11]
    assert most_confused_images(example(), 1).tolist() == [8]
    assert most_confused_images(example(None), 10).tolist() == [2, 8, 11]


def test_pairs_count_both_directions_between_old_and_new_only() -> None:
    first, second = most_confused_pairs(example(), 5)
    assert (first.old, first.new, first.old_as_new, first.new_as_old) == (0, 2, 1, 1)
    assert (second.old, second.new, second.old_as_new, second.new_as_old) == (0, 3, 0, 1)
    perfect = scored([0, 1, 2], [0, 1, 2], 2, 3, None)
    assert most_confused_pairs(perfect, 5) == []


def test_examples_are_what_their_name_says() -> None:
    pair = most_confused_pairs(example(), 1)[0]
    found: dict[str, NDArray[np.int64]] = pair_examples(example(), pair, 2)
    assert {name: positions.tolist() for name, positions in found.items()} == {
        "old": [0, 1],
        "old as new": [2],
        "new as old": [8],
        "new": [6, 7],
    }


def test_old_new_and_false_old_take_turns_by_class() -> None:
    # Classes 0 and 1 are old. Cluster c is class c. Three images of class 2 are taken for 0, one of class 0 for 3.
    truth = [0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3, 3]
    answer = [0, 0, 0, 3, 1, 1, 2, 2, 2, 2, 0, 0, 0, 3, 3]
    confidence = [0.5, 0.9, 0.8, 0.9, 0.3, 0.4, 0.9, 0.8, 0.7, 0.6, 0.1, 0.9, 0.2, 0.5, 0.6]
    found = old_and_new_examples(scored(truth, answer, 2, 4, confidence), 3)
    assert {name: positions.tolist() for name, positions in found.items()} == {
        "old": [1, 5, 2],
        "new": [6, 14, 7],
        "false-old": [11, 12, 10],
    }
