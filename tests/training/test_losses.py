"""Each loss equals a float64 loop transcription, in value and in gradient (central differences of the loops).

The ``loop_`` functions are the equations once more, row by row and class by class, without anything of the package.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from gcdbench.training import losses

Matrix = NDArray[np.float64]
Labels = NDArray[np.int64]


def unit(rows: Matrix) -> Matrix:
    return np.array([row / math.sqrt(sum(x * x for x in row)) for row in rows])


def softmax(row: Matrix, temperature: float) -> Matrix:
    exponentials = [math.exp(x / temperature) for x in row]
    return np.array([e / sum(exponentials) for e in exponentials])


def loop_info_nce(projection: Matrix, temperature: float) -> float:
    z, rows = unit(projection), len(projection)
    images, total = rows // 2, 0.0
    for i in range(rows):
        partner = i + images if i < images else i - images
        below = sum(math.exp(z[i] @ z[n] / temperature) for n in range(rows) if n != i)
        total -= math.log(math.exp(z[i] @ z[partner] / temperature) / below)
    return total / rows


def loop_info_nce_cross_view(projection: Matrix, temperature: float) -> float:
    z, images = unit(projection), len(projection) // 2
    total = 0.0
    for i in range(images):
        below = sum(math.exp(z[i] @ z[images + n] / temperature) for n in range(images))
        total -= math.log(math.exp(z[i] @ z[images + i] / temperature) / below)
    return total / images


def loop_supcon(projection: Matrix, labels: Labels, temperature: float) -> float:
    z = unit(projection)
    known = [i for i in range(len(labels)) if labels[i] >= 0]
    terms = []
    for i in known:
        others = [n for n in known if n != i]
        positives = [n for n in others if labels[n] == labels[i]]
        if not positives:
            continue
        below = sum(math.exp(z[i] @ z[n] / temperature) for n in others)
        terms.append(-sum(math.log(math.exp(z[i] @ z[q] / temperature) / below) for q in positives) / len(positives))
    return sum(terms) / len(terms) if terms else 0.0


def loop_supcon_cross_view(projection: Matrix, labels: Labels, temperature: float) -> float:
    z, images = unit(projection), len(projection) // 2
    known = [i for i in range(images) if labels[i] >= 0]
    total = 0.0
    for i in known:
        positives = [q for q in known if labels[q] == labels[i]]
        below = sum(math.exp(z[i] @ z[images + n] / temperature) for n in range(images))
        total -= sum(math.log(math.exp(z[i] @ z[images + q] / temperature) / below) for q in positives) / len(positives)
    return total / len(known) if known else 0.0


def loop_swapped_cross_entropy(logits: Matrix, student: float, teacher: float, targets: Matrix | None = None) -> float:
    """``targets`` are the logits of the teacher, which gradients do not reach."""
    targets = logits if targets is None else targets
    images, total = len(logits) // 2, 0.0
    for i in range(images):
        for pupil, guide in ((i, i + images), (i + images, i)):
            p, q = softmax(logits[pupil], student), softmax(targets[guide], teacher)
            total -= sum(q[k] * math.log(p[k]) for k in range(len(p)))
    return total / (2 * images)


def loop_mean_entropy_gap(logits: Matrix, temperature: float) -> float:
    rows, classes = logits.shape
    mean = sum(softmax(row, temperature) for row in logits) / rows
    return math.log(classes) - sum(-p * math.log(p) for p in mean)


def loop_supervised_cross_entropy(logits: Matrix, labels: Labels, temperature: float) -> float:
    terms = [-math.log(softmax(row, temperature)[y]) for row, y in zip(logits, labels, strict=True) if y >= 0]
    return sum(terms) / len(terms) if terms else 0.0


def loop_view_divergence(logits: Matrix, temperature: float, double_softmax: bool) -> float:
    images, total = len(logits) // 2, 0.0
    for i in range(images):
        p, q = softmax(logits[i], temperature), softmax(logits[i + images], temperature)
        top, bottom = (softmax(p, 1.0), softmax(q, 1.0)) if double_softmax else (p, q)
        total += sum(p[k] * math.log(top[k] / bottom[k]) for k in range(len(p)))
    return total / images


def loop_local_entropy(
    logits: Matrix, labels: Labels, k_old: int, threshold: float, prior: Matrix | None, fixed: Matrix | None = None
) -> float:
    """Temperatures 0.1 (mask) and 0.05, margin 0.4 as published; ``fixed`` are logits of a detached target."""
    total = 0.0
    for r, row in enumerate(logits):
        p = softmax(row, 0.1)
        if labels[r] >= 0 or max(p) < threshold or int(np.argmax(p)) >= k_old:
            continue
        target = softmax(row if fixed is None else fixed[r], 0.05)
        moved = row / 0.05 + (0.0 if prior is None else 0.4 * np.array([math.log(x) for x in prior]))
        predicted = softmax(moved, 1.0)
        total -= sum(target[k] * math.log(predicted[k]) for k in range(len(p)))
    return total / len(logits)


SHAPES = ((1, 3), (2, 2), (3, 5), (6, 4))
TEMPERATURES = (1.0, 0.1, 0.07)


def label_patterns(images: int, classes: int) -> list[np.ndarray]:
    """Labels of the images: none, all of one class, one image per class, mixed with gaps."""
    rng = np.random.default_rng(images * 10 + classes)
    mixed = rng.integers(-1, classes, size=images)
    return [
        np.full(images, -1),
        np.zeros(images, dtype=int),
        np.where(np.arange(images) < classes, np.arange(images), -1),
        mixed,
    ]


GRID = [
    (images, width, temperature, pattern)
    for (images, width), temperature in itertools.product(SHAPES, TEMPERATURES)
    for pattern in range(4)
]


def rows(images: int, width: int, *, cosines: bool) -> np.ndarray:
    values = np.random.default_rng(images * 100 + width).normal(size=(2 * images, width))
    return np.tanh(values) if cosines else values


def both(labels: np.ndarray) -> np.ndarray:
    return np.concatenate([labels, labels]).astype(np.int64)


def check(
    fast: Callable[[Tensor], Tensor],
    reference: Callable[[np.ndarray], float],
    at: np.ndarray,
    *,
    tolerance: float = 1e-9,
) -> None:
    """Value against the loops, gradient against central differences of the loops."""
    point = torch.tensor(at, requires_grad=True)
    value = fast(point)
    assert value.ndim == 0
    assert value.item() == pytest.approx(reference(at), rel=tolerance, abs=tolerance)
    value.backward()
    gradient, step = np.empty_like(at), 1e-6
    for index in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[index] += step
        down[index] -= step
        gradient[index] = (reference(up) - reference(down)) / (2 * step)
    assert point.grad is not None
    np.testing.assert_allclose(point.grad.numpy(), gradient, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(("images", "width"), SHAPES)
@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_info_nce(images: int, width: int, temperature: float) -> None:
    at = rows(images, width, cosines=False)
    check(lambda x: losses.info_nce(x, temperature), lambda x: loop_info_nce(x, temperature), at)
    check(lambda x: losses.info_nce_cross_view(x, temperature), lambda x: loop_info_nce_cross_view(x, temperature), at)


@pytest.mark.parametrize(("images", "width", "temperature", "pattern"), GRID)
def test_supcon(images: int, width: int, temperature: float, pattern: int) -> None:
    at, labels = rows(images, width, cosines=False), both(label_patterns(images, 3)[pattern])
    given_labels = torch.from_numpy(labels)
    check(lambda x: losses.supcon(x, given_labels, temperature), lambda x: loop_supcon(x, labels, temperature), at)
    check(
        lambda x: losses.supcon_cross_view(x, given_labels, temperature),
        lambda x: loop_supcon_cross_view(x, labels, temperature),
        at,
    )


def test_supcon_of_single_rows_ignores_anchors_without_a_positive() -> None:
    at, labels = rows(3, 4, cosines=False), np.array([0, 1, 2, 0, -1, 3])
    check(lambda x: losses.supcon(x, torch.from_numpy(labels), 0.07), lambda x: loop_supcon(x, labels, 0.07), at)


@pytest.mark.parametrize(("images", "classes"), SHAPES)
@pytest.mark.parametrize("teacher", [0.07, 0.04])
def test_swapped_cross_entropy(images: int, classes: int, teacher: float) -> None:
    at = rows(images, classes, cosines=True)
    check(
        lambda x: losses.swapped_cross_entropy(x, 0.1, teacher),
        lambda x: loop_swapped_cross_entropy(x, 0.1, teacher, targets=at),
        at,
    )


@pytest.mark.parametrize(("images", "classes"), [*SHAPES, (3, 1)])
@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_mean_entropy_gap(images: int, classes: int, temperature: float) -> None:
    at = rows(images, classes, cosines=True)
    check(lambda x: losses.mean_entropy_gap(x, temperature), lambda x: loop_mean_entropy_gap(x, temperature), at)


@pytest.mark.parametrize(("images", "width", "temperature", "pattern"), GRID)
def test_supervised_cross_entropy(images: int, width: int, temperature: float, pattern: int) -> None:
    at, labels = rows(images, width, cosines=True), both(label_patterns(images, width)[pattern])
    check(
        lambda x: losses.supervised_cross_entropy(x, torch.from_numpy(labels), temperature),
        lambda x: loop_supervised_cross_entropy(x, labels, temperature),
        at,
    )


@pytest.mark.parametrize(("images", "classes"), SHAPES)
@pytest.mark.parametrize("double", [False, True])
def test_view_divergence(images: int, classes: int, double: bool) -> None:
    at = rows(images, classes, cosines=True)
    check(
        lambda x: losses.view_divergence(x, 0.1, double_softmax=double),
        lambda x: loop_view_divergence(x, 0.1, double),
        at,
    )


@pytest.mark.parametrize(("images", "classes"), [(2, 2), (3, 5), (6, 4)])
@pytest.mark.parametrize("pattern", range(4))
@pytest.mark.parametrize("with_prior", [False, True])
@pytest.mark.parametrize("detach", [False, True])
def test_local_entropy(images: int, classes: int, pattern: int, with_prior: bool, detach: bool) -> None:
    at, labels = rows(images, classes, cosines=True), both(label_patterns(images, classes)[pattern])
    k_old = max(classes // 2, 1)
    prior = np.arange(1.0, classes + 1) / sum(range(classes + 1)) if with_prior else None
    margin = None if prior is None else 0.4 * torch.log(torch.tensor(prior))

    def fast(x: Tensor) -> Tensor:
        mask = losses.confident_old(x, torch.from_numpy(labels), k_old, 0.1, 0.7)
        return losses.local_entropy(x, mask, 0.05, log_margin=margin, detach=detach)

    check(fast, lambda x: loop_local_entropy(x, labels, k_old, 0.7, prior, fixed=at if detach else None), at)


def test_local_entropy_grid_selects_something() -> None:
    """The grid above is not all zeros."""
    at = rows(6, 4, cosines=True)
    assert losses.confident_old(torch.tensor(at), torch.full((12,), -1), 2, 0.1, 0.7).any()


@pytest.mark.parametrize(
    "loss",
    [
        lambda x, y: losses.supcon(x, y),
        lambda x, y: losses.supcon_cross_view(x, y),
        lambda x, y: losses.supervised_cross_entropy(x, y, 0.1),
    ],
)
def test_without_labels_a_supervised_loss_is_exactly_zero_and_has_a_graph(
    loss: Callable[[Tensor, Tensor], Tensor],
) -> None:
    x = torch.randn(8, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    value = loss(x, torch.full((8,), -1))
    value.backward()
    assert value.item() == 0.0
    assert x.grad is not None
    assert torch.equal(x.grad, torch.zeros_like(x))


def test_one_image_alone_has_no_negatives() -> None:
    assert losses.info_nce(torch.randn(2, 4)).item() == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_projections_of_any_length_give_the_same_contrast(scale: float) -> None:
    x = torch.randn(8, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert losses.info_nce(x * scale).item() == pytest.approx(losses.info_nce(x).item(), rel=1e-9)


def test_mean_entropy_is_finite_for_a_class_nobody_predicts() -> None:
    logits = torch.zeros(4, 3)
    logits[:, 0] = 1e4
    logits.requires_grad_()
    value = losses.mean_entropy_gap(logits, 0.1)
    value.backward()
    assert value.item() == pytest.approx(math.log(3), rel=1e-5)
    assert torch.isfinite(logits.grad).all()  # type: ignore[arg-type]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(2, 7), st.integers(0, 2**31))
def test_properties(images: int, classes: int, seed: int) -> None:
    """The divergence is never negative, the entropy gap lies in [0, log K], a swap of views is not seen."""
    logits = torch.tanh(torch.randn(2 * images, classes, generator=torch.Generator().manual_seed(seed)).double())
    swapped = logits.roll(images, dims=0)
    assert losses.view_divergence(logits, 0.1).item() >= -1e-12
    assert -1e-12 <= losses.mean_entropy_gap(logits, 0.1).item() <= math.log(classes) + 1e-12
    for loss in (lambda x: losses.info_nce(x), lambda x: losses.swapped_cross_entropy(x, 0.1, 0.05)):
        assert loss(swapped).item() == pytest.approx(loss(logits).item(), rel=1e-9, abs=1e-12)
