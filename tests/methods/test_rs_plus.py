"""RankStats+: the sets, the pairs and the ramp, each written out in loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gcdbench.methods.configs import RSPlusConfig
from gcdbench.methods.rs_plus import RSPlus, pairwise_cross_entropy, same_top_features
from gcdbench.testing.batches import make_batch
from gcdbench.testing.tiny import tiny_context, tiny_task


def method(**config: object) -> RSPlus:
    _, task, _ = tiny_task()
    made = RSPlus(RSPlusConfig(**config), task, tiny_context())  # type: ignore[arg-type]
    made.k = 4
    return made


def softmax(row: np.ndarray) -> np.ndarray:
    e = np.exp(row - row.max())
    return e / e.sum()


def test_pairs_are_alike_when_their_strongest_features_are_the_same_set() -> None:
    rng = np.random.default_rng(0)
    # Few features, so that equal sets do occur; order within the set must not count.
    rows = np.abs(rng.normal(size=(30, 6)))
    tops = [set(np.argsort(-row)[:3].tolist()) for row in rows]
    expected = np.array([[a == b for b in tops] for a in tops])
    made = same_top_features(torch.from_numpy(rows), 3).numpy()
    assert np.array_equal(made, expected)
    assert expected.sum() > 30


def test_more_ranks_than_features_make_all_alike() -> None:
    assert same_top_features(torch.rand(4, 3), 5).all()


def test_the_pairwise_loss_equals_the_sum_over_counted_pairs() -> None:
    rng = np.random.default_rng(1)
    first, second = (np.array([softmax(r) for r in rng.normal(size=(6, 4))]) for _ in range(2))
    same, counted = rng.random((6, 6)) < 0.4, rng.random((6, 6)) < 0.5
    total, pairs = 0.0, 0
    for i in range(6):
        for j in range(6):
            if counted[i, j]:
                s = float(first[i] @ second[j])
                total -= math.log((s if same[i, j] else 1 - s) + 1e-7)
                pairs += 1
    made = pairwise_cross_entropy(*(torch.from_numpy(a) for a in (first, second, same, counted)))
    assert float(made) == pytest.approx(total / pairs)


def test_perfectly_certain_predictions_cost_a_finite_sum() -> None:
    p = torch.eye(3, requires_grad=True)
    everything = torch.ones(3, 3, dtype=torch.bool)
    loss = pairwise_cross_entropy(p, p, everything, everything)
    loss.backward()  # type: ignore[no-untyped-call]
    assert torch.isfinite(loss)
    assert p.grad is not None
    assert torch.isfinite(p.grad).all()


@pytest.mark.parametrize("labels", [[0, 1, -1, -1, -1], [-1, -1, -1], [0, 1, 1], [0]])
def test_all_terms_written_out(labels: list[int]) -> None:
    batch = make_batch(labels, k=4, k_old=2, progress=0.1)
    made = method(top_k=2).losses(batch)
    logits, feature = batch.logits.detach().numpy(), batch.feature.detach().numpy()
    b = len(labels)
    p = np.array([softmax(row / 0.1) for row in logits])
    given = [-math.log(softmax(logits[r, :2] / 0.1)[labels[r % b]]) for r in range(2 * b) if labels[r % b] >= 0]
    tops = [frozenset(np.argsort(-feature[i])[:2].tolist()) for i in range(b)]
    free = [i for i in range(b) if labels[i] < 0]
    pairs = [
        -math.log((p[i] @ p[b + j] if tops[i] == tops[j] else 1 - p[i] @ p[b + j]) + 1e-7) for i in free for j in free
    ]
    weight = 50 * math.exp(-5 * (1 - 0.1 / 0.75) ** 2)
    assert float(made["given"].detach()) == pytest.approx(np.mean(given) if given else 0.0)
    assert float(made["pairs"].detach()) == pytest.approx(np.mean(pairs) if pairs else 0.0)
    assert float(made["consistency"].detach()) == pytest.approx(weight * np.mean((p[:b] - p[b:]) ** 2))


def test_the_switch_lets_labelled_images_compete_among_all_outputs() -> None:
    batch = make_batch([0, 1], k=4, k_old=2)
    logits = batch.logits.detach().numpy()
    expected = np.mean([-math.log(softmax(logits[r] / 0.1)[r % 2]) for r in range(4)])
    assert float(method(supervised_outputs="all").losses(batch)["given"].detach()) == pytest.approx(expected)


def test_the_ramp_rises_to_the_full_weight() -> None:
    made = method(consistency=5.0, ramp=0.25)
    assert made.consistency_weight(0.0) == pytest.approx(5 * math.exp(-5))
    assert made.consistency_weight(0.25) == made.consistency_weight(1.0) == 5.0
    assert method(consistency=3.0, ramp=0.0).consistency_weight(0.0) == 3.0
