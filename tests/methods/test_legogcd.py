"""LegoGCD is SimGCD plus two terms, each with the switches its code and paper call for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gcdbench.methods.configs import LegoGCDConfig, SimGCDConfig
from gcdbench.methods.legogcd import LegoGCD
from gcdbench.methods.simgcd import SimGCD
from gcdbench.models.backbone import TailOutput
from gcdbench.testing.tiny import shrink, tiny_context, tiny_task
from gcdbench.training import losses
from gcdbench.training.batch import Batch
from gcdbench.training.method import TaskInfo

TASK = TaskInfo(k_old=2, k=5, image_size=14)


def make_batch(seed: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    logits = torch.tanh(draw(12, 5))
    # Confident of an old class: in both views without a label, and with one.
    logits[[0, 2, 8], 1] = 0.99
    logits[[0, 2, 8], 2:] *= 0.3
    return Batch(
        ids=torch.arange(6),
        labels=torch.tensor([0, 1, -1, -1, -1, -1]),
        tail=TailOutput(map=draw(12, 4, 1, 1), pooled=draw(12, 4)),
        feature=draw(12, 4),
        projection=draw(12, 3),
        logits=logits,
        progress=0.0,
        epoch=0,
        step=0,
        k_old=2,
    )


def method(**settings: Any) -> LegoGCD:
    made = LegoGCD(LegoGCDConfig(**settings), TASK, tiny_context())
    made.k = 5
    return made


def values(made: SimGCD, batch: Batch) -> dict[str, float]:
    return {name: value.item() for name, value in made.losses(batch).items()}


def test_simgcd_s_terms_are_untouched() -> None:
    batch = make_batch()
    plain = values(SimGCD(SimGCDConfig(), TASK, tiny_context()), batch)
    ours = values(method(), batch)
    assert {name: ours[name] for name in plain} == pytest.approx(plain)
    assert set(ours) - set(plain) == {"dkl", "ler"}


def test_the_divergence_carries_the_unsupervised_weight_and_has_two_forms() -> None:
    batch = make_batch()
    code, paper = values(method(), batch)["dkl"], values(method(dkl="paper"), batch)["dkl"]
    assert code == pytest.approx(0.65 * losses.view_divergence(batch.logits, 0.1, double_softmax=True).item())
    assert paper == pytest.approx(0.65 * losses.view_divergence(batch.logits, 0.1).item())
    assert paper > 2 * abs(code)


def test_the_local_term_has_weight_two_and_a_margin_or_neither() -> None:
    batch = make_batch()
    mask = losses.confident_old(batch.logits, batch.labels_both, 2, 0.1, 0.7)
    assert mask[[2, 8]].all()
    assert not mask[0]
    prior = torch.tensor([0.4, 0.3, 0.1, 0.1, 0.1], dtype=torch.float64)
    for settings, margin, weight in (({}, 0.4 * prior.log(), 2.0), ({"ler": "multi"}, None, 1.0)):
        made = method(**settings)
        made.prior = prior
        expected = weight * losses.local_entropy(batch.logits, mask, 0.05, log_margin=margin).item()
        assert values(made, batch)["ler"] == pytest.approx(expected)


def test_the_prior_starts_uniform_and_follows_the_mean_prediction_at_temperature_one() -> None:
    made, expected = method(), np.full(5, 0.2)
    for seed in range(3):
        batch = make_batch(seed)
        made.after_step(batch)
        exponentials = np.exp(batch.logits.numpy())
        mean = (exponentials / exponentials.sum(axis=1, keepdims=True)).mean(axis=0)
        expected = 0.999 * expected + 0.001 * mean
    assert made.prior is not None
    np.testing.assert_allclose(made.prior.numpy(), expected, rtol=1e-12)


def test_the_prior_is_part_of_the_training_state() -> None:
    made, other = method(), method()
    made.after_step(make_batch())
    other.load_training_state(made.training_state())
    assert other.prior is not None
    assert made.prior is not None
    assert torch.equal(other.prior, made.prior)


def test_it_trains() -> None:
    data, task, truth = tiny_task(images=64, seed=3)
    made = shrink(LegoGCD)(LegoGCDConfig(), task, tiny_context(epochs=30))
    made.fit(data)
    prediction = made.predict(data.unlabelled)
    old = truth[prediction.ids] < task.k_old
    assert (prediction.cluster == truth[prediction.ids])[old].mean() > 0.9
