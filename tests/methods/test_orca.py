"""ORCA: the margin, the partners and the three terms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gcdbench.methods.configs import ORCAConfig
from gcdbench.methods.orca import ORCA, choose_partners
from gcdbench.testing.batches import make_batch
from gcdbench.testing.tiny import shrink, tiny_context, tiny_task


def softmax(row: np.ndarray) -> np.ndarray:
    e = np.exp(row - row.max())
    return e / e.sum()


def test_the_margin_is_the_mean_uncertainty_of_unlabelled_images_up_to_a_limit() -> None:
    data, task, _ = tiny_task()
    for limit in (0.5, 0.05):
        method = shrink(ORCA)(ORCAConfig(max_margin=limit), task, tiny_context(epochs=1))
        method.fit(data)
        method.on_epoch_start(1)
        pooled = method.embed(data.unlabelled).astype(np.float64)
        pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)
        w = method.prototypes.weight.detach().numpy().astype(np.float64)
        w /= np.linalg.norm(w, axis=1, keepdims=True)
        uncertainty = 1 - np.mean([softmax(10 * row).max() for row in pooled @ w.T])
        assert method.margin == pytest.approx(min(uncertainty, limit), abs=1e-5)
        assert 0 < uncertainty < 1


def test_a_fixed_margin_is_not_measured() -> None:
    _, task, _ = tiny_task()
    method = ORCA(ORCAConfig(fixed_margin=0.3), task, tiny_context())
    method.on_epoch_start(0)
    assert method.margin == 0.3


def test_partners_of_labelled_rows_share_the_class_and_of_others_are_nearest() -> None:
    torch.manual_seed(0)
    labels = torch.tensor([0, 0, 0, 1, -1, -1, -1])
    feature = torch.randn(7, 3)
    unit = feature / feature.norm(dim=1, keepdim=True)
    cosine = (unit @ unit.T).fill_diagonal_(-2)
    seen = set()
    for _ in range(60):
        made = choose_partners(feature, labels)
        seen.add(int(made[0]))
        assert made[0] in (1, 2)
        assert made[3] == 3
        assert made[4:].tolist() == cosine.argmax(dim=1)[4:].tolist()
    assert seen == {1, 2}


def test_a_batch_of_one_agrees_with_itself() -> None:
    assert choose_partners(torch.ones(1, 3), torch.tensor([-1])).tolist() == [0]


@pytest.mark.parametrize("labels", [[0, 0, 1, -1, -1], [-1, -1, -1], [0, 1]])
def test_all_terms_written_out(labels: list[int]) -> None:
    _, task, _ = tiny_task()
    method = ORCA(ORCAConfig(), task, tiny_context())
    method.k, method.margin = 4, 0.3
    batch = make_batch(labels, k=4, k_old=2)
    torch.manual_seed(5)
    made = method.losses(batch)
    torch.manual_seed(5)
    partner = choose_partners(batch.feature.detach()[: len(labels)], batch.labels).tolist()
    logits, b = batch.logits.detach().numpy(), len(labels)
    given = []
    for i in range(b):
        if labels[i] >= 0:
            row = 10 * logits[i]
            row[labels[i]] += 10 * 0.3
            given.append(-math.log(softmax(row)[labels[i]]))
    p = [softmax(10 * row) for row in logits]
    pairs = [-math.log(p[i] @ p[b + partner[i]] + 1e-7) for i in range(b)]
    mean = np.mean(p[:b], axis=0)
    assert float(made["given"].detach()) == pytest.approx(np.mean(given) if given else 0.0)
    assert float(made["pairs"].detach()) == pytest.approx(np.mean(pairs))
    # The entropy counts from its largest value, log K, so that it is 0 at best.
    assert float(made["entropy"].detach()) == pytest.approx(float(np.sum(mean * np.log(mean))) + math.log(4))


def test_the_margin_makes_the_supervised_loss_smaller() -> None:
    _, task, _ = tiny_task()
    method = ORCA(ORCAConfig(), task, tiny_context())
    method.k = 4
    batch = make_batch([0, 1, 1], k=4, k_old=2)
    values = []
    for margin in (0.0, 0.2, 0.5):
        method.margin = margin
        values.append(float(method.losses(batch)["given"].detach()))
    assert values[0] > values[1] > values[2]


def test_both_ends_of_a_pair_learn_and_the_choice_of_partners_does_not() -> None:
    _, task, _ = tiny_task()
    method = ORCA(ORCAConfig(), task, tiny_context())
    method.k = 4
    batch = make_batch([0, 0, -1, -1], k=4, k_old=2)
    method.losses(batch)["pairs"].backward()  # type: ignore[no-untyped-call]
    assert batch.logits.grad is not None
    first, second = batch.logits.grad.chunk(2)
    assert (first.abs().sum(dim=1) > 0).all()
    assert (second.abs().sum(dim=1) > 0).any()
    assert batch.feature.grad is None
