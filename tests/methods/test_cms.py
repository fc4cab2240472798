"""CMS as a method: memory, terms, clusters of known and unseen images, unknown K."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from gcdbench.methods.algorithms.clustering import nearest_centre
from gcdbench.methods.algorithms.mean_shift import mean_shift, shifted_contrast
from gcdbench.methods.cms import CMS
from gcdbench.methods.configs import CMSConfig
from gcdbench.models.predict import load_model
from gcdbench.testing.batches import make_batch
from gcdbench.testing.tiny import TinyBackbone, tiny_context, tiny_task
from gcdbench.training import losses


def fitted(k_known: bool = True, **config: object) -> tuple[CMS, object]:
    data, task, _ = tiny_task(k_known=k_known)
    method = CMS(CMSConfig(projection=8, **config), task, tiny_context())  # type: ignore[arg-type]
    method.projector_hidden = 24
    method.fit(data)
    return method, data


def test_the_memory_holds_two_views_of_every_training_image_at_length_one() -> None:
    method, _ = fitted()
    assert method.memory.shape == (2 * len(method.train_images), 8)
    assert torch.allclose(method.memory.norm(dim=1), torch.ones(len(method.memory)), atol=1e-5)
    before = method.memory
    method.on_epoch_start(1)
    assert not torch.equal(before, method.memory)
    assert not torch.equal(method.memory[: len(method.train_images)], method.memory[len(method.train_images) :])


@pytest.mark.parametrize("denominator", ["code", "paper"])
def test_the_terms_are_made_of_the_tested_parts(denominator: str) -> None:
    method, _ = fitted(denominator=denominator)
    batch = make_batch([0, 1, -1, 0], k=4, k_old=2, channels=8)
    method.memory = method.memory.double()
    made = method.losses(batch)
    points = F.normalize(batch.projection, dim=1)
    shifted = mean_shift(points, method.memory, k=8, alpha=0.5)
    contrast = shifted_contrast(shifted, 0.25, negatives_only=denominator == "code")
    assert torch.allclose(made["rep_u"], 0.65 * contrast)
    # The supervised term sees the points themselves, not the shifted ones.
    assert torch.allclose(made["rep_s"], 0.35 * losses.supcon(batch.projection, batch.labels_both, 0.07))


def test_training_images_keep_their_cluster_and_others_join_the_nearest_mean() -> None:
    method, data = fitted()
    made = method.predict(data.unlabelled)  # type: ignore[attr-defined]
    assert made.cluster.tolist() == [method.found[i] for i in made.ids.tolist()]
    assert not made.anchored
    unseen, _, _ = tiny_task(images=14, seed=9)
    method.found = {}
    made = method.predict(unseen.unlabelled)
    assert np.array_equal(made.cluster, nearest_centre(method.points(unseen.unlabelled), method.centres))


def test_an_estimated_k_is_the_number_of_clusters() -> None:
    method, data = fitted(k_known=False)
    made = method.predict(data.unlabelled)  # type: ignore[attr-defined]
    assert made.k_hat == len(method.centres) >= 2


def test_its_model_gives_new_images_the_nearest_mean(tmp_path) -> None:  # type: ignore[no-untyped-def]
    method, _ = fitted()
    method.save_model(tmp_path)
    model = load_model(tmp_path, load_backbone=TinyBackbone)
    assert model.card.predictor == "projected-centre/1"
    unseen, _, _ = tiny_task(images=30, seed=9)
    method.found = {}
    expected = method.predict(unseen.unlabelled)
    made = model.predict_squares(unseen.unlabelled.pixels())
    assert np.array_equal(made.cluster, expected.cluster)
    np.testing.assert_allclose(made.confidence, expected.confidence, atol=1e-5)
