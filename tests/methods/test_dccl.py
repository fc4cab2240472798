"""DCCL: concepts, their memory, the order that shows them, and the loss."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gcdbench.images.image_set import ImageSet
from gcdbench.methods.dccl import DCCL, DCCLConfig, concept_means, concept_order, drop_small, update_memory
from gcdbench.testing.batches import make_batch
from gcdbench.testing.tiny import shrink, tiny_context, tiny_task


def test_small_groups_are_dropped_and_the_rest_renumbered() -> None:
    groups, count = drop_small(np.array([0, 0, 0, 1, 2, 2, 2, 2, 1]), 3)
    assert groups.tolist() == [0, 0, 0, -1, 1, 1, 1, 1, -1]
    assert count == 2
    assert drop_small(np.array([0, 1, 2]), 2) == (pytest.approx(np.array([-1, -1, -1])), 0)


def test_a_concept_is_the_mean_direction_of_its_members() -> None:
    features = torch.tensor([[2.0, 0.0], [0.0, 5.0], [3.0, 3.0]])
    made = concept_means(features, torch.tensor([0, 0, -1]), 1)
    assert made[0].tolist() == pytest.approx([math.sqrt(0.5)] * 2)
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


def test_the_order_shows_one_concept_after_the_other() -> None:
    concepts = np.array([0] * 20 + [1] * 3 + [-1] * 10 + [2] * 16)
    order = concept_order(concepts, 4, np.random.default_rng(0))
    assert len(order) == 52
    groups = concepts[order].reshape(-1, 4)
    assert (groups == groups[:, :1]).all()
    assert (concepts[order] >= 0).all()
    assert set(groups[:3, 0]) == set(groups[3:6, 0]) == {0, 1, 2}
    # Enough members: no image twice in a row of four.
    assert all(len(set(part)) == 4 for part in order.reshape(-1, 4) if concepts[part[0]] != 1)


@pytest.mark.parametrize(("progress", "weight"), [(0.0, 0.04), (0.25, 0.22), (0.5, 0.4), (1.0, 0.4)])
def test_the_concept_loss_written_out(progress: float, weight: float) -> None:
    _, task, _ = tiny_task()
    method = DCCL(DCCLConfig(), task, tiny_context())
    rng = np.random.default_rng(0)
    memory = rng.normal(size=(3, 6))
    memory /= np.linalg.norm(memory, axis=1, keepdims=True)
    method.memory = torch.from_numpy(memory)
    method.concepts = torch.tensor([2, -1, 0, 1])
    method.train_images = ImageSet(ids=np.arange(4), store=np.zeros((4, 2, 2, 3), dtype=np.uint8))
    batch = make_batch([0, -1, 1, -1], k=4, k_old=2, progress=progress)
    total, rows = 0.0, 0
    for r, feature in enumerate(batch.feature.detach().numpy()):
        concept = [2, -1, 0, 1][r % 4]
        if concept >= 0:
            scores = memory @ (feature / np.linalg.norm(feature)) / 0.05
            total += math.log(np.exp(scores).sum()) - scores[concept]
            rows += 1
    assert float(method.losses(batch)["concept"].detach()) == pytest.approx(weight * total / rows)


def test_without_a_concept_it_is_gcd() -> None:
    data, task, _ = tiny_task(images=12)
    method = shrink(DCCL)(DCCLConfig(min_size=50, n_init=2), task, tiny_context())
    method.fit(data)
    assert len(method.memory) == 0
    assert set(method.losses(make_batch([0, -1], k=4, k_old=2))) == {"rep_u", "rep_s"}
