"""DCCL: two batches per step, the loss of each of them, and what is remembered between steps."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from gcdbench.methods.algorithms.concepts import update_memory
from gcdbench.methods.configs import DCCLConfig, GCDConfig
from gcdbench.methods.dccl import DCCL, Shown
from gcdbench.methods.gcd import GCD
from gcdbench.testing import conformance
from gcdbench.testing.batches import make_batch
from gcdbench.testing.tiny import built, shrink, tiny_context, tiny_task
from gcdbench.training.batch import Batch
from gcdbench.training.context import derive_seed
from gcdbench.training.sampler import balanced_order, epoch_rng

# Small concepts, and images without one, among 48 images.
CONFIG = DCCLConfig(communities="louvain", neighbours=2, threshold=-1.0, min_size=4, per_concept=4, n_init=2)


@pytest.mark.parametrize(("progress", "weight"), [(0.0, 0.04), (0.25, 0.22), (0.5, 0.4), (1.0, 0.4)])
def test_the_losses_written_out(progress: float, weight: float) -> None:
    """The concept loss is made of the second batch alone, GCD's terms of the first."""
    _, task, _ = tiny_task()
    method = DCCL(DCCLConfig(), task, tiny_context())
    rng = np.random.default_rng(0)
    memory = rng.normal(size=(3, 6))
    memory /= np.linalg.norm(memory, axis=1, keepdims=True)
    method.memory = torch.from_numpy(memory)
    rows, concepts = rng.normal(size=(10, 6)), [2, 2, 0, 0, 1] * 2
    method.shown = Shown(feature=torch.from_numpy(rows), concepts=torch.tensor(concepts))
    batch = make_batch([0, -1, 1, -1], k=4, k_old=2, progress=progress)
    total = 0.0
    for row, concept in zip(rows, concepts, strict=True):
        scores = [float(row @ centre) / math.sqrt(float(row @ row)) / 0.05 for centre in memory]
        total += math.log(sum(math.exp(score) for score in scores)) - scores[concept]
    made = method.losses(batch)
    assert float(made["concept"]) == pytest.approx(weight * total / len(rows))
    plain = GCD(GCDConfig(), task, tiny_context()).losses(batch)
    assert set(made) == {*plain, "concept"}
    assert all(torch.equal(made[name], value) for name, value in plain.items())


class Recording(shrink(DCCL)):  # type: ignore[misc]
    """Keeps what each step showed."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.steps: list[tuple[Batch, Shown | None, torch.Tensor, torch.Tensor]] = []

    def losses(self, batch: Batch) -> dict[str, torch.Tensor]:
        self.steps.append((batch, self.shown, self.concepts, self.memory))
        return super().losses(batch)  # type: ignore[no-any-return]


@cache
def recorded() -> Recording:
    data, task, _ = tiny_task()
    method = Recording(CONFIG, task, tiny_context(epochs=4))
    method.fit(data)
    return method


def test_images_without_a_concept_are_trained_on_and_the_second_batch_has_none_of_them() -> None:
    method = recorded()
    assert all(len(memory) for *_, memory in method.steps)
    outliers = [set(torch.nonzero(concepts < 0)[:, 0].tolist()) for _, _, concepts, _ in method.steps]
    assert any(outliers)
    seen = [set(np.searchsorted(method.train_images.ids, batch.ids.numpy()).tolist()) for batch, *_ in method.steps]
    assert any(images & own for images, own in zip(seen, outliers, strict=True))
    for number, (batch, *_) in enumerate(method.steps):  # three steps in an epoch: the usual order
        order = balanced_order(method.train_labels, epoch_rng(0, number // 3))[16 * (number % 3) :][:16]
        assert batch.ids.tolist() == method.train_images.ids[order].tolist()
    for batch, shown, _, memory in method.steps:
        assert shown is not None
        assert shown.concepts.min() >= 0
        # Whole concepts, as many as fit into a batch of 16 images; both views.
        together = min(len(batch.ids) // 4, len(memory))
        groups = shown.concepts.view(2, together, 4)
        assert (groups == groups[:1, :, :1]).all()
        assert len(set(groups[0, :, 0].tolist())) == together
        assert shown.feature.shape == (2 * 4 * together, 12)


def test_the_memory_follows_the_second_batch_from_step_to_step() -> None:
    steps = recorded().steps
    for (_, shown, concepts, memory), (_, _, later, moved) in pairwise(steps):
        if concepts is later:  # the same epoch
            assert shown is not None
            rows = shown.feature.detach() / shown.feature.detach().norm(dim=1, keepdim=True)
            assert torch.allclose(update_memory(memory, rows, shown.concepts, 0.1), moved, atol=1e-6)


def test_the_second_batch_goes_through_the_network_by_itself() -> None:
    data, *_ = tiny_task()
    method = built(DCCL, CONFIG)
    method.train_images, method.train_labels = data.train()
    method.on_epoch_start(0)
    method.backbone.train()
    ids = method.train_images.ids[:12]
    first = method.views.pair(ids, 5, 1)
    given = (torch.from_numpy(ids), torch.from_numpy(method.train_labels[:12]))
    batch = method.forward(first, *given, progress=0.5, epoch=0, step=5)
    assert method.shown is not None
    chosen = method._choose(12, 0)
    second = method.views.pair(method.train_images.ids[chosen], 5, derive_seed(0, "concept-views"))
    # In training mode each pass is normalised by its own batch.
    for hidden, feature in ((first, batch.feature), (second, method.shown.feature)):
        assert torch.allclose(method.backbone.tail(hidden).mean(dim=(2, 3)), feature, atol=1e-6)
    assert method.shown.concepts.tolist() == [int(method.concepts[i]) for i in [*chosen, *chosen]]
    method.after_step(batch)
    assert not np.array_equal(method._choose(12, 0), chosen)
    assert not np.array_equal(method._choose(12, 1), method._choose(12, 0))


def test_the_graph_counts_the_image_itself_among_its_neighbours() -> None:
    data, *_ = tiny_task()
    method = built(DCCL, replace(CONFIG, neighbours=2, min_size=2))
    method.train_images, method.train_labels = data.train()
    method.on_epoch_start(0)
    features = method.embed(method.train_images).astype(np.float64)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    nearest = [
        max((j for j in range(len(unit)) if j != i), key=lambda j: float(unit[i] @ unit[j])) for i in range(len(unit))
    ]
    # One edge from each image: it and its nearest other are always of one community.
    assert all(method.concepts[i] == method.concepts[j] for i, j in enumerate(nearest))


def test_a_run_that_is_killed_between_its_concept_batches_ends_with_the_same_bits(tmp_path: Path) -> None:
    conformance.run_check("resume", DCCL, CONFIG, folder=tmp_path)


def test_without_a_concept_it_is_gcd() -> None:
    data, task, _ = tiny_task(images=12)
    method = Recording(DCCLConfig(min_size=50, n_init=2), task, tiny_context())
    method.fit(data)
    assert len(method.memory) == 0
    assert all(shown is None for _, shown, *_ in method.steps)
    assert set(method.losses(make_batch([0, -1], k=4, k_old=2))) == {"rep_u", "rep_s"}
