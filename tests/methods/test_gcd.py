"""GCD: its two terms, its final clusters, K that is not told, and the model it leaves behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from gcdbench.methods.algorithms.clustering import constrained_kmeans, nearest_centre, normalise_rows
from gcdbench.methods.configs import GCDConfig
from gcdbench.methods.gcd import GCD
from gcdbench.models.card_file import read_card
from gcdbench.models.predict import load_model
from gcdbench.testing.batches import make_batch
from gcdbench.testing.tiny import TinyBackbone, shrink, tiny_context, tiny_task
from gcdbench.training import losses


def test_the_weights_of_the_two_terms() -> None:
    _, task, _ = tiny_task()
    batch = make_batch([0, 1, -1, -1], k=4, k_old=2)
    made = GCD(GCDConfig(), task, tiny_context()).losses(batch)
    assert float(made["rep_u"].detach()) == pytest.approx(0.65 * float(losses.info_nce(batch.projection, 1.0).detach()))
    supcon = losses.supcon(batch.projection, batch.labels_both, 0.07)
    assert float(made["rep_s"].detach()) == pytest.approx(0.35 * float(supcon.detach()))


def test_clusters_are_those_of_semi_supervised_kmeans_on_trained_features(tmp_path: Path) -> None:
    data, task, _ = tiny_task()
    ctx = tiny_context()
    method = shrink(GCD)(GCDConfig(n_init=5), task, ctx)
    method.fit(data)
    labelled, unlabelled = (normalise_rows(method.embed(images)) for images in (data.labelled, data.unlabelled))
    expected = constrained_kmeans(
        unlabelled, 4, ctx.rng("ss-kmeans"), labelled=labelled, labels=data.labels, k_old=2, n_init=5
    )
    made = method.predict(data.unlabelled)
    assert np.array_equal(made.cluster, expected.cluster)
    assert made.anchored
    method.save_model(tmp_path)
    assert read_card(tmp_path).predictor == "centre/1"
    alone = load_model(tmp_path, load_backbone=TinyBackbone)
    assert np.array_equal(alone.predict_squares(data.unlabelled.pixels()).cluster, made.cluster)


def test_the_head_finds_the_nearest_centre_whatever_their_lengths() -> None:
    from gcdbench.models.heads import Centres

    generator = torch.Generator().manual_seed(0)
    head = Centres(5, 7, generator)
    with torch.no_grad():
        head.weight *= torch.linspace(0.1, 3.0, 7)[:, None]
    points = torch.randn(50, 5, generator=generator)
    expected = nearest_centre(normalise_rows(points.numpy()), head.weight.detach().numpy())
    assert np.array_equal(head(points).argmax(dim=1).numpy(), expected)


def test_an_estimated_k_is_the_number_of_centres() -> None:
    data, task, _ = tiny_task(k_known=False)
    method = shrink(GCD)(GCDConfig(n_init=2), task, tiny_context())
    method.fit(data)
    made = method.predict(data.unlabelled)
    assert made.k_hat == method.k == len(method.prototypes.weight) >= 2
