"""UNO+: targets over all classes, the swap between views, and the head that is kept."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
import torch

from gcdbench.methods.algorithms.sinkhorn import sinkhorn
from gcdbench.methods.configs import UNOPlusConfig
from gcdbench.methods.uno_plus import UNOPlus, balanced_targets
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


def sinkhorn_by_loops(logits: list[list[float]], epsilon: float, iterations: int) -> list[list[float]]:
    """The iteration as published: prototypes to equal sums, then images to equal sums, at last each image to 1."""
    images, prototypes = len(logits), len(logits[0])
    q = [[math.exp(value / epsilon) for value in row] for row in logits]
    for _ in range(iterations):
        for p in range(prototypes):
            total = sum(q[i][p] for i in range(images))
            for i in range(images):
                q[i][p] /= total * prototypes
        for i in range(images):
            total = sum(q[i])
            q[i] = [value / total / images for value in q[i]]
    return [[value / sum(row) for value in row] for row in q]


def targets_by_loops(logits: list[list[float]], labels: list[int], k_old: int, balance: str) -> list[list[float]]:
    columns = len(logits[0])
    first = k_old if balance == "new" and columns > k_old else 0
    free = [i for i, label in enumerate(labels) if label < 0]
    spread = sinkhorn_by_loops([logits[i][first:] for i in free], 0.05, 3) if free else []
    targets = []
    for i, label in enumerate(labels):
        given = [1.0 if c == label else 0.0 for c in range(columns)]
        targets.append(given if label >= 0 else [0.0] * first + spread[free.index(i)])
    return targets


@pytest.mark.parametrize("balance", ["all", "new"])
@pytest.mark.parametrize(("images", "columns"), [(9, 4), (3, 14), (12, 2)])
def test_targets_written_out(balance: str, images: int, columns: int) -> None:
    """Two old classes; the last case has no new one, where both ways are the same."""
    rng = np.random.default_rng(images)
    logits, labels = np.tanh(rng.normal(size=(images, columns))), rng.integers(-1, 2, size=images)
    fixed = 2 if balance == "new" else 0
    made = balanced_targets(torch.from_numpy(logits), torch.from_numpy(labels), 0.05, 3, fixed=fixed)
    assert np.allclose(made.numpy(), targets_by_loops(logits.tolist(), labels.tolist(), 2, balance))


@pytest.mark.parametrize(("overcluster", "share"), [(1, 0.5), (3, 0.25), (10, 1 / 11)])
def test_balancing_over_all_prototypes_asks_for_a_share_of_old_images_that_overclustering_lowers(
    overcluster: int, share: float
) -> None:
    logits = torch.tanh(torch.randn(4000, 4 + 4 * overcluster, generator=torch.Generator().manual_seed(0)))
    nobody = torch.full((4000,), -1)
    # More iterations than published: this is what they tend to.
    asked = balanced_targets(logits, nobody, 0.5, 50)[:, :4].sum() / 4000
    assert float(asked) == pytest.approx(share, abs=0.01)
    assert float(balanced_targets(logits, nobody, 0.5, 50, fixed=4)[:, :4].sum()) == 0.0


@pytest.mark.parametrize("balance", ["all", "new"])
@pytest.mark.parametrize("k", [4, 2])
def test_the_loss_written_out_head_by_head(k: int, balance: Literal["all", "new"]) -> None:
    _, task, _ = tiny_task()
    method = UNOPlus(UNOPlusConfig(heads=2, overcluster=3, balance=balance), task, tiny_context())
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
            targets = [np.array(targets_by_loops(view.tolist(), labels, 2, balance)) for view in views]
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
