"""nguf-approx: corrected targets, weights by density, distillation and memory, written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gcdbench.images.image_set import ImageSet
from gcdbench.methods.configs import NGUFApproxConfig
from gcdbench.methods.nguf_approx import NGUFApprox, density_weights
from gcdbench.methods.simgcd import SimGCD
from gcdbench.testing.batches import make_batch
from gcdbench.testing.tiny import tiny_context, tiny_task
from gcdbench.training.batch import Batch


def softmax(rows: np.ndarray) -> np.ndarray:
    e = np.exp(rows - rows.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def method(images: int = 9, **config: object) -> NGUFApprox:
    _, task, _ = tiny_task()
    made = NGUFApprox(NGUFApproxConfig(**config), task, tiny_context())  # type: ignore[arg-type]
    made.k = 4
    made.train_images = ImageSet(ids=np.arange(images), store=np.zeros((images, 2, 2, 3), dtype=np.uint8))
    rng = np.random.default_rng(3)
    memory = rng.normal(size=(images, 6))
    made.features = torch.from_numpy(memory / np.linalg.norm(memory, axis=1, keepdims=True))
    made.predictions = torch.from_numpy(softmax(rng.normal(size=(images, 4))))
    return made


def expected_targets(made: NGUFApprox, batch: Batch, k: int, largest: float) -> np.ndarray:
    """Row by row: the k nearest entries of the memory that are not the image's own."""
    feature = batch.feature.detach().numpy()
    memory, stored = made.features.numpy(), made.predictions.numpy()
    b = len(batch.ids)
    own = softmax(batch.logits.detach().numpy() / made.teacher_temperature(0))
    guided, closeness = [], []
    for r, row in enumerate(feature):
        cosines = {j: float(memory[j] @ row / np.linalg.norm(row)) for j in range(len(memory)) if j != r % b}
        near = sorted(cosines, key=lambda j: -cosines[j])[:k]
        guided.append(stored[near].mean(axis=0))
        closeness.append(np.mean([cosines[j] for j in near]))
    c = np.array(closeness)
    w = (largest * (c - c.min()) / (c.max() - c.min()))[:, None]
    return np.asarray((1 - w) * own + w * np.array(guided))


@pytest.mark.parametrize("neighbours", [1, 3, 8])
def test_targets_are_mixed_with_those_of_the_nearest_other_images(neighbours: int) -> None:
    made = method(neighbours=neighbours)
    batch = make_batch([0, -1, -1, 1], k=4, k_old=2)
    own = torch.softmax(batch.logits.detach() / made.teacher_temperature(0), dim=1)
    target = made._correct(batch, own)
    assert np.allclose(target.numpy(), expected_targets(made, batch, neighbours, 0.5))
    assert torch.allclose(target.sum(dim=1), torch.ones(8).double())


def test_the_terms_written_out_and_the_rest_is_simgcd() -> None:
    made = method(neighbours=3)
    batch = make_batch([0, -1, -1, 1], k=4, k_old=2)
    terms = {name: float(value.detach()) for name, value in made.losses(batch).items()}
    target = np.roll(expected_targets(made, batch, 3, 0.5), 4, axis=0)
    log_p = np.log(softmax(batch.logits.detach().numpy() / 0.1))
    assert terms["cls_u"] == pytest.approx(0.65 * -(target * log_p).sum(axis=1).mean())
    before = np.tile(made.predictions.numpy()[:4], (2, 1))
    divergence = (before * (np.log(before) - log_p)).sum(axis=1).mean()
    assert terms["distill"] == pytest.approx(0.65 * 0.5 * divergence)
    base = SimGCD.losses(made, batch)
    for name in ("memax", "cls_s", "rep_u", "rep_s"):
        assert terms[name] == pytest.approx(float(base[name].detach()))


def test_without_neighbours_weight_and_distillation_it_is_simgcd() -> None:
    made = method(neighbour_weight=0.0, distill_weight=0.0)
    batch = make_batch([0, -1, 1, -1], k=4, k_old=2)
    ours, base = made.losses(batch), SimGCD.losses(made, batch)
    assert sum(float(v.detach()) for v in ours.values()) == pytest.approx(sum(float(v.detach()) for v in base.values()))


def test_a_training_set_of_one_image_corrects_nothing() -> None:
    made = method(images=1)
    batch = make_batch([-1], k=4, k_old=2)
    own = torch.softmax(batch.logits.detach(), dim=1)
    assert torch.allclose(made._correct(batch, own), own)


def test_weights_rise_with_closeness_and_are_half_where_nothing_differs() -> None:
    assert density_weights(torch.tensor([0.2, 0.6, 1.0]), 0.5).tolist() == pytest.approx([0.0, 0.25, 0.5])
    assert density_weights(torch.tensor([0.7, 0.7]), 0.5).tolist() == pytest.approx([0.25, 0.25])


def test_the_memory_keeps_what_was_last_seen() -> None:
    made = method()
    batch = make_batch([0, -1], k=4, k_old=2)
    untouched = made.features[2:].clone()
    made.after_step(batch)
    rows = batch.feature.detach().numpy()
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    mean = rows[:2] + rows[2:]
    assert np.allclose(made.features[:2].numpy(), mean / np.linalg.norm(mean, axis=1, keepdims=True))
    p = softmax(batch.logits.detach().numpy() / 0.1)
    assert np.allclose(made.predictions[:2].numpy(), (p[:2] + p[2:]) / 2)
    assert torch.equal(made.features[2:], untouched)
    assert math.isclose(float(made.predictions.sum()), 9.0)


def test_corrected_targets_carry_no_gradient() -> None:
    made = method(neighbours=3)
    batch = make_batch([0, -1, -1, 1], k=4, k_old=2)
    made.losses(batch)["cls_u"].backward()  # type: ignore[no-untyped-call]
    logits = batch.logits.detach().numpy()
    target = np.roll(expected_targets(made, batch, 3, 0.5), 4, axis=0)
    assert batch.logits.grad is not None
    assert np.allclose(batch.logits.grad.numpy(), 0.65 * (softmax(logits / 0.1) - target) / 0.1 / 8)
    assert batch.feature.grad is None
