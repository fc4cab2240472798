"""Batches at the edge, for every trained method: one kind of image missing, a single image, a class seen once."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from gcdbench.core.arrays import IntArray
from gcdbench.methods.builtin import METHODS
from gcdbench.plugins.specs import MethodSpec, load_attribute
from gcdbench.testing.tiny import shrink, tiny_context, tiny_task
from gcdbench.training.parametric import ParametricMethod

TRAINED = {spec.name: spec for spec in METHODS if spec.trained}


@cache
def fitted(name: str) -> ParametricMethod:
    spec: MethodSpec = TRAINED[name]
    assert spec.config is not None
    data, task, _ = tiny_task()
    method: ParametricMethod = shrink(spec.load())(load_attribute(spec.config)(), task, tiny_context())
    method.fit(data)
    return method


def chosen(labels: IntArray, batch: str) -> list[int]:
    """Positions of the training images that make up a batch."""
    given, free = ((labels >= 0).nonzero()[0].tolist(), (labels < 0).nonzero()[0].tolist())
    first = [next(i for i in given if labels[i] == c) for c in (0, 1)]
    return {
        "no label": free[:6],
        "labels only": given[:6],
        "one labelled image": [*free[:5], given[0]],
        "each class once": first,
        "one image": free[:1],
        "one image with a label": given[:1],
        "an image twice": [free[0], free[0], given[0], given[0]],
    }[batch]


@pytest.mark.parametrize(
    "batch",
    ["no label", "labels only", "one labelled image", "each class once", "one image", "one image with a label",
     "an image twice"],
)  # fmt: skip
@pytest.mark.parametrize("name", sorted(TRAINED))
def test_losses_and_gradients_are_finite_numbers(name: str, batch: str) -> None:
    method = fitted(name)
    rows = chosen(method.train_labels, batch)
    ids = method.train_images.ids[rows]
    method.backbone.train()
    parameters = [p for module in method.trained_modules().values() for p in module.parameters()]
    for parameter in parameters:
        parameter.grad = None
    torch.manual_seed(0)
    made = method.forward(
        method.views.pair(ids, 0, 1),
        torch.from_numpy(ids),
        torch.from_numpy(method.train_labels[rows]),
        progress=0.5,
        epoch=1,
        step=0,
    )
    losses = method.losses(made)
    torch.stack(list(losses.values())).sum().backward()  # type: ignore[no-untyped-call]
    assert all(torch.isfinite(value) for value in losses.values()), losses
    assert all(torch.isfinite(p.grad).all() for p in parameters if p.grad is not None)
    method.after_step(made)


@pytest.mark.parametrize("name", sorted(TRAINED))
def test_a_usual_batch_moves_the_network(name: str) -> None:
    method = fitted(name)
    ids = method.train_images.ids[:12]
    made = method.forward(
        method.views.pair(ids, 0, 1),
        torch.from_numpy(ids),
        torch.from_numpy(method.train_labels[:12]),
        progress=0.5,
        epoch=1,
        step=0,
    )
    # A term may be about prototypes alone.
    network = [*method.backbone.tail.parameters(), *method.prototypes.parameters()]
    for term, value in method.losses(made).items():
        gradients = torch.autograd.grad(value, network, retain_graph=True, allow_unused=True)
        moved = [gradient for gradient in gradients if gradient is not None]
        assert any((gradient != 0).any() for gradient in moved), f"{term} does not reach the network"
