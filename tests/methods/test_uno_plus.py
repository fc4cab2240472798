"""UNO+: targets over all classes, the swap between views, and the head that is kept."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gcdbench.methods.algorithms.sinkhorn import sinkhorn
from gcdbench.methods.uno_plus import UNOPlus, UNOPlusConfig, balanced_targets
from gcdbench.testing.batches import make_batch
from gcdbench.testing.tiny import TinyBackbone, shrink, tiny_context, tiny_task


def test_targets_are_given_labels_or_balanced_over_all_classes() -> None:
    logits = torch.randn(5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    made = balanced_targets(logits, torch.tensor([1, -1, -1, 0, -1]), 0.05, 3)
    assert made[0].tolist() == [0, 1, 0, 0]
    assert made[3].tolist() == [1, 0, 0, 0]
    free = torch.tensor([1, 2, 4])
    assert torch.allclose(made[free], sinkhorn(logits[free], epsilon=0.05, iterations=3))


@pytest.mark.parametrize("labels", [[0, 1], [-1, -1], [-1]])
def test_targets_where_one_kind_is_missing(labels: list[int]) -> None:
    made = balanced_targets(torch.randn(len(labels), 3), torch.tensor(labels), 0.05, 3)
    assert torch.allclose(made.sum(dim=1), torch.ones(len(labels)))


@pytest.mark.parametrize("k", [4, 2])
def test_the_loss_written_out_head_by_head(k: int) -> None:
    _, task, _ = tiny_task()
    method = UNOPlus(UNOPlusConfig(heads=2, overcluster=3), task, tiny_context())
    method.k, method.backbone, method.projector_out = k, TinyBackbone(channels=6), 6
    method.extras = {name: module.double() for name, module in method.extra_modules().items()}
    labels = [0, 1, -1, -1]
    batch = make_batch(labels, k=k, k_old=2)
    made = method.losses(batch)
    for name, rows, term in (("heads", batch.feature, "cluster"), ("fine", batch.projection, "overcluster")):
        each = []
        heads: torch.nn.ModuleList = method.extras[name]  # type: ignore[assignment]
        for head in heads:
            x = rows.detach().numpy()
            x = x / np.linalg.norm(x, axis=1, keepdims=True)
            w = head.weight.detach().numpy()
            w = w / np.linalg.norm(w, axis=1, keepdims=True)
            logits = np.concatenate([batch.logits.detach().numpy()[:, :2], x @ w.T], axis=1)
            views = logits[:4], logits[4:]
            targets = [balanced_targets(torch.from_numpy(v), batch.labels, 0.05, 3).numpy() for v in views]
            total = 0.0
            for own, other in ((0, 1), (1, 0)):
                for row, target in zip(views[own], targets[other], strict=True):
                    log_p = row / 0.1 - math.log(np.exp(row / 0.1).sum())
                    total -= float(target @ log_p)
            each.append(total / 8)
        assert float(made[term].detach()) == pytest.approx(np.mean(each) / 2)


def test_the_head_with_the_lowest_loss_of_the_last_epoch_is_kept() -> None:
    data, task, _ = tiny_task()
    method = shrink(UNOPlus)(UNOPlusConfig(heads=3), task, tiny_context())
    method.fit(data)
    heads: torch.nn.ModuleList = method.extras["heads"]  # type: ignore[assignment]
    best = int(method.head_loss.argmin())
    assert torch.equal(method.prototypes.weight[2:], heads[best].weight)
    assert (method.head_loss > 0).all()
    method.on_epoch_start(1)
    assert (method.head_loss == 0).all()


def test_targets_are_constants_and_each_view_learns_the_other_s() -> None:
    """Without new classes both halves are the same loss over the old prototypes, whose gradient is p − target."""
    _, task, _ = tiny_task()
    method = UNOPlus(UNOPlusConfig(heads=2), task, tiny_context())
    method.k, method.backbone, method.projector_out = 2, TinyBackbone(channels=6), 6
    method.extras = {name: module.double() for name, module in method.extra_modules().items()}
    batch = make_batch([0, 1, -1, -1, -1], k=2, k_old=2)
    sum(method.losses(batch).values()).backward()  # type: ignore[union-attr]
    logits = batch.logits.detach()
    targets = [balanced_targets(view, batch.labels, 0.05, 3) for view in logits.chunk(2)]
    expected = (torch.softmax(logits / 0.1, dim=1) - torch.cat([targets[1], targets[0]])) / 0.1 / 10
    assert batch.logits.grad is not None
    assert torch.allclose(batch.logits.grad, expected)
