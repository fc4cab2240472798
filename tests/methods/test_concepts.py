"""DCCL's concepts: small groups, centres, the memory, and the batches, against loops over single images."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gcdbench.core.arrays import IntArray
from gcdbench.methods.algorithms.concepts import concept_batch, concept_means, drop_small, update_memory


def test_small_groups_are_dropped_and_the_rest_renumbered() -> None:
    groups, count = drop_small(np.array([0, 0, 0, 1, 2, 2, 2, 2, 1]), 3)
    assert groups.tolist() == [0, 0, 0, -1, 1, 1, 1, 1, -1]
    assert count == 2
    assert drop_small(np.array([0, 1, 2]), 2) == (pytest.approx(np.array([-1, -1, -1])), 0)


@pytest.mark.parametrize("seed", range(3))
def test_a_centre_is_the_mean_of_raw_features_brought_to_length_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(12, 4)) * rng.uniform(0.1, 10.0, size=(12, 1))
    concepts = rng.permutation([0, 0, 0, 1, 1, 1, 1, 2, 2, -1, -1, -1])
    made = concept_means(torch.from_numpy(features), torch.from_numpy(concepts), 3)
    for concept in range(3):
        mean = [0.0] * 4
        for feature, own in zip(features.tolist(), concepts.tolist(), strict=True):
            if own == concept:
                mean = [
                    total + value / concepts.tolist().count(concept) for total, value in zip(mean, feature, strict=True)
                ]
        length = math.sqrt(sum(value * value for value in mean))
        assert made[concept].tolist() == pytest.approx([value / length for value in mean])


def test_a_longer_feature_counts_for_more_and_no_concept_is_no_centre() -> None:
    features = torch.tensor([[3.0, 0.0], [0.0, 4.0], [3.0, 3.0]])
    assert concept_means(features, torch.tensor([0, 0, -1]), 1)[0].tolist() == pytest.approx([0.6, 0.8])
    assert concept_means(features, torch.tensor([-1, -1, -1]), 0).shape == (0, 2)


def test_the_memory_moves_row_by_row_as_published() -> None:
    rng = np.random.default_rng(0)
    memory, rows = rng.normal(size=(4, 5)), rng.normal(size=(30, 5))
    memory /= np.linalg.norm(memory, axis=1, keepdims=True)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    concepts = rng.integers(-1, 3, size=30)
    expected = memory.copy()
    for row, concept in zip(rows, concepts, strict=True):
        if concept >= 0:
            expected[concept] = 0.1 * expected[concept] + 0.9 * row
            expected[concept] /= np.linalg.norm(expected[concept])
    made = update_memory(*(torch.from_numpy(a) for a in (memory, rows, concepts)), 0.1)
    assert np.allclose(made.numpy(), expected)
    assert np.allclose(made[3].numpy(), memory[3])


def test_a_batch_without_a_concept_moves_nothing() -> None:
    memory = torch.eye(2)
    assert torch.equal(update_memory(memory, torch.ones(3, 2), torch.tensor([-1, -1, -1]), 0.1), memory)


@st.composite
def concepts_of_images(draw: st.DrawFn) -> IntArray:
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=7))
    concepts = [concept for concept, size in enumerate(sizes) for _ in range(size)]
    outliers = draw(st.integers(0, 5))
    return np.array(draw(st.permutations([*concepts, *[-1] * outliers])), dtype=np.int64)


@given(concepts_of_images(), st.integers(1, 6), st.integers(1, 30), st.integers(0, 50))
@settings(max_examples=150, deadline=None)
def test_batches_go_through_the_concepts_one_after_the_other(
    concepts: IntArray, per_concept: int, images: int, seed: int
) -> None:
    count = int(concepts.max()) + 1
    together = min(max(images // per_concept, 1), count)
    in_a_pass = count // together
    batches = [
        concept_batch(concepts, number, images=images, per_concept=per_concept, seed=seed)
        for number in range(2 * in_a_pass)
    ]
    for batch in batches:
        assert len(batch) == together * per_concept
        for group in batch.reshape(together, per_concept):
            (own,) = set(concepts[group].tolist())  # one concept, and never an image without one
            assert own >= 0
            size = int((concepts == own).sum())
            first, *rest = group.tolist()
            if size > 1:
                assert first not in rest
            if size > per_concept:  # enough others: no image twice
                assert len(set(group.tolist())) == per_concept
    for turn in (batches[:in_a_pass], batches[in_a_pass:]):
        shown = np.concatenate([concepts[batch].reshape(together, per_concept)[:, 0] for batch in turn])
        assert len(set(shown.tolist())) == len(shown)
    again = concept_batch(concepts, 1, images=images, per_concept=per_concept, seed=seed)
    assert np.array_equal(again, batches[1])


def test_every_member_is_drawn_as_often_as_the_others_and_passes_differ() -> None:
    concepts = np.repeat(np.arange(4), 5)
    batches = [concept_batch(concepts, n, images=8, per_concept=2, seed=1) for n in range(4000)]
    counts = np.bincount(np.concatenate(batches), minlength=20)
    expected = len(batches) * 8 / 20
    assert np.abs(counts - expected).max() < 5 * math.sqrt(expected)
    orders = {tuple(concepts[batch[::2]]) for batch in batches[:50]}
    assert len(orders) > 10
    other = concept_batch(concepts, 0, images=8, per_concept=2, seed=2)
    assert not np.array_equal(other, batches[0])
