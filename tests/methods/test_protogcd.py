"""ProtoGCD's two own losses against loops over images and prototypes, and the published sum."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from gcdbench.methods.configs import ProtoGCDConfig
from gcdbench.methods.protogcd import (
    ProtoGCD,
    adaptive_cross_entropy,
    adaptive_targets,
    prototype_separation,
)
from gcdbench.models.heads import Prototypes
from gcdbench.testing.batches import make_batch
from gcdbench.testing.tiny import shrink, tiny_context, tiny_task
from gcdbench.training import losses
from gcdbench.training.batch import Batch
from gcdbench.training.method import TaskInfo

Array = NDArray[np.float64]


def random_logits(rows: int, classes: int, seed: int) -> Tensor:
    draw = torch.randn(rows, classes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.tanh(draw)


def softmax(row: Array, temperature: float) -> Array:
    exponentials = np.exp((row - row.max()) / temperature)
    result: Array = exponentials / exponentials.sum()
    return result


def targets_by_loop(view: Array, temperature: float, share: float) -> Array:
    """One view: probabilities, then a label for the most confident, one image after the other."""
    result = np.stack([softmax(row, temperature) for row in view])
    confidence = []
    for row in result:
        second, first = sorted(row)[-2:]
        confidence.append(first / (second + 1e-6))
    chosen = sorted(range(len(view)), key=lambda image: -confidence[image])[: math.floor(len(view) * share)]
    for image in chosen:
        label = int(result[image].argmax())
        result[image] = 0.0
        result[image, label] = 1.0
    return result


def loss_by_loop(logits: Array, temperature: float, teacher: float, share: float) -> float:
    images = len(logits) // 2
    views = logits[:images], logits[images:]
    total = 0.0
    for taught, teaching in ((0, 1), (1, 0)):
        target = targets_by_loop(views[teaching], teacher, share)
        for image in range(images):
            prediction = softmax(views[taught][image], temperature)
            total -= sum(target[image, k] * math.log(prediction[k]) for k in range(logits.shape[1]))
    return total / (2 * images)


def separation_by_loop(prototypes: Array, temperature: float) -> float:
    unit = [row / np.linalg.norm(row) for row in prototypes]
    each = []
    for k, one in enumerate(unit):
        others = [math.exp(float(one @ other) / temperature) for j, other in enumerate(unit) if j != k]
        each.append(math.log(sum(others) / len(others)))
    return sum(each) / len(each)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.99, 1.0])
@pytest.mark.parametrize(("images", "classes"), [(1, 2), (5, 3), (16, 8), (7, 20)])
def test_pseudo_labels_equal_the_loop(images: int, classes: int, share: float) -> None:
    logits = random_logits(2 * images, classes, seed=images)
    ours = adaptive_cross_entropy(logits, 0.1, 0.05, share)
    assert ours.item() == pytest.approx(loss_by_loop(logits.numpy(), 0.1, 0.05, share), rel=1e-10)
    np.testing.assert_allclose(
        adaptive_targets(logits[:images], 0.05, share),
        targets_by_loop(logits[:images].numpy(), 0.05, share),
        atol=1e-12,
    )


@given(images=st.integers(1, 12), classes=st.integers(2, 9), share=st.floats(0, 1), seed=st.integers(0, 2**31 - 1))
@settings(max_examples=60, deadline=None)
def test_as_many_hard_labels_as_asked_for_and_distributions_all(
    images: int, classes: int, share: float, seed: int
) -> None:
    targets = adaptive_targets(random_logits(images, classes, seed), 0.5, share)
    torch.testing.assert_close(targets.sum(dim=1), torch.ones(images, dtype=torch.float64))
    assert int((targets.max(dim=1).values == 1.0).sum()) == int(images * share)


def test_nothing_hard_is_simgcds_distillation_and_all_hard_is_cross_entropy_with_the_other_views_label() -> None:
    logits = random_logits(12, 5, seed=1)
    soft = losses.swapped_cross_entropy(logits, 0.1, 0.05)
    assert adaptive_cross_entropy(logits, 0.1, 0.05, 0.0).item() == pytest.approx(soft.item())
    other = logits.argmax(dim=1).roll(6)
    hard = torch.nn.functional.cross_entropy(logits / 0.1, other)
    assert adaptive_cross_entropy(logits, 0.1, 0.05, 1.0).item() == pytest.approx(hard.item())


def test_targets_are_constants() -> None:
    """The gradient is that of a cross-entropy with fixed targets: finite differences with the targets held."""
    logits = random_logits(8, 4, seed=2).requires_grad_()
    (gradient,) = torch.autograd.grad(adaptive_cross_entropy(logits, 0.1, 0.05, 0.5), logits)
    fixed = logits.detach()
    target = torch.cat([adaptive_targets(fixed[4:], 0.05, 0.5), adaptive_targets(fixed[:4], 0.05, 0.5)])

    def value(x: Tensor) -> Tensor:
        return -(target * torch.log_softmax(x / 0.1, dim=1)).sum(dim=1).mean()

    step = 1e-6
    for row, column in ((0, 0), (3, 2), (7, 3)):
        moved = torch.zeros_like(fixed)
        moved[row, column] = step
        numeric = (value(fixed + moved) - value(fixed - moved)) / (2 * step)
        assert gradient[row, column].item() == pytest.approx(numeric.item(), abs=1e-6)


@pytest.mark.parametrize(("count", "width"), [(2, 3), (8, 16), (30, 5)])
def test_separation_equals_the_loop(count: int, width: int) -> None:
    prototypes = torch.randn(count, width, generator=torch.Generator().manual_seed(count), dtype=torch.float64)
    expected = separation_by_loop(prototypes.numpy(), 0.1)
    assert prototype_separation(prototypes, 0.1).item() == pytest.approx(expected, rel=1e-10)


def test_separation_looks_at_directions_only_and_rewards_pointing_apart() -> None:
    generator = torch.Generator().manual_seed(0)
    prototypes = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    value = prototype_separation(prototypes, 0.1)
    lengths = torch.rand(6, 1, generator=generator, dtype=torch.float64) + 0.1
    torch.testing.assert_close(prototype_separation(prototypes * lengths, 0.1), value)
    torch.testing.assert_close(prototype_separation(prototypes[[3, 1, 5, 0, 2, 4]], 0.1), value)
    together = prototype_separation(torch.ones(3, 4, dtype=torch.float64), 0.1)
    assert together.item() == pytest.approx(10.0)
    assert prototype_separation(torch.eye(4, dtype=torch.float64), 0.1).item() == pytest.approx(0.0)
    assert prototype_separation(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), 0.1).item() == pytest.approx(-10.0)


def test_separation_has_the_gradient_of_its_value() -> None:
    prototypes = torch.randn(5, 3, generator=torch.Generator().manual_seed(4), dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: prototype_separation(x, 0.1), prototypes)
    alone = torch.ones(1, 3, requires_grad=True)
    prototype_separation(alone, 0.1).backward()
    assert alone.grad is not None
    assert not alone.grad.any()


def terms(config: ProtoGCDConfig, batch: Batch, prototypes: Prototypes, epochs: int = 200) -> dict[str, float]:
    method = ProtoGCD(config, TaskInfo(k_old=2, k=5, image_size=14), tiny_context(epochs=epochs))
    method.prototypes = prototypes
    return {name: value.item() for name, value in method.losses(batch).items()}


@pytest.fixture
def prototypes() -> Prototypes:
    return Prototypes(6, 5, torch.Generator().manual_seed(3)).double()


@pytest.mark.parametrize(("epoch", "share"), [(0, 0.0), (50, 50 / 99), (99, 1.0), (100, 1.0), (199, 1.0)])
def test_the_published_sum(epoch: int, share: float, prototypes: Prototypes) -> None:
    """0.65 (cls_u + 2 · entropy + 0.1 · separation + rep_u) + 0.35 (cls_s + rep_s); r is np.linspace(0, 1, 100)."""
    batch = make_batch([0, 1, 0, -1, -1, -1, -1], k=5, k_old=2, epoch=epoch)
    assert share == pytest.approx(np.concatenate([np.linspace(0, 1, 100), np.ones(100)])[epoch])
    logits, y = batch.logits.detach(), batch.labels_both
    expected = {
        "cls_u": 0.65 * loss_by_loop(logits.numpy(), 0.1, 0.05, share),
        "entropy": 0.65 * 2.0 * losses.mean_entropy_gap(logits, 0.1).item(),
        "separation": 0.65 * 0.1 * separation_by_loop(prototypes.weight.detach().numpy(), 0.1),
        "cls_s": 0.35 * losses.supervised_cross_entropy(logits, y, 0.1).item(),
        "rep_u": 0.65 * losses.info_nce(batch.projection, 1.0).item(),
        "rep_s": 0.35 * losses.supcon(batch.projection, y, 0.07).item(),
    }
    assert terms(ProtoGCDConfig(), batch, prototypes) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"entropy_weight": 1.0}, "entropy"), ({"separation_weight": 1.0}, "separation"), ({"lambda_": 0.5}, "cls_s"),
        ({"tau": 0.2}, "cls_s"), ({"tau_teacher": 0.1}, "cls_u"), ({"hard_start": 0.9}, "cls_u"),
        ({"hard_ramp": 0.1}, "cls_u"), ({"hard_end": 0.2}, "cls_u"), ({"tau_u": 0.5}, "rep_u"),
        ({"tau_c": 0.5}, "rep_s"),
    ],
)  # fmt: skip
def test_every_field_changes_its_own_term(change: dict[str, Any], name: str, prototypes: Prototypes) -> None:
    batch = make_batch([0, 1, 0, 1, -1, -1, -1], k=5, k_old=2, epoch=20)
    base = ProtoGCDConfig()
    changed = terms(replace(base, **change), batch, prototypes)[name]
    assert abs(changed - terms(base, batch, prototypes)[name]) > 1e-4


def test_it_learns_what_was_labelled() -> None:
    data, task, truth = tiny_task(images=64, seed=3)
    method = shrink(ProtoGCD)(ProtoGCDConfig(), task, tiny_context(epochs=30))
    method.fit(data)
    prediction = method.predict(data.unlabelled)
    old = truth[prediction.ids] < task.k_old
    assert (prediction.cluster == truth[prediction.ids])[old].mean() > 0.9
