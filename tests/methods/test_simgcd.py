"""SimGCD is its published sum of losses, survives small tasks, and learns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gcdbench.core.errors import TrainingError
from gcdbench.images.image_set import ImageSet
from gcdbench.methods.configs import SimGCDConfig
from gcdbench.methods.simgcd import SimGCD
from gcdbench.models.backbone import TailOutput
from gcdbench.splits.data import GCDData
from gcdbench.testing.tiny import shrink, tiny_context, tiny_task
from gcdbench.training import losses
from gcdbench.training.batch import Batch
from gcdbench.training.method import TaskInfo

Small = shrink(SimGCD)


def make_batch(images: int = 6, k: int = 5, *, epoch: int = 0, seed: int = 0) -> Batch:
    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    generator = torch.Generator().manual_seed(seed)
    feature_map = draw(2 * images, 4, 2, 2)
    pooled = feature_map.mean(dim=(2, 3))
    return Batch(
        ids=torch.arange(images),
        labels=torch.tensor([0, 1, 0, -1, -1, -1][:images]),
        tail=TailOutput(map=feature_map, pooled=pooled),
        feature=pooled,
        projection=draw(2 * images, 3),
        logits=torch.tanh(draw(2 * images, k)),
        progress=0.0,
        epoch=epoch,
        step=0,
        k_old=2,
    )


def terms(config: SimGCDConfig, batch: Batch, epochs: int = 200) -> dict[str, float]:
    method = SimGCD(config, TaskInfo(k_old=2, k=5, image_size=14), tiny_context(epochs=epochs))
    return {name: value.item() for name, value in method.losses(batch).items()}


def test_the_published_sum() -> None:
    """0.65 (cls_u + 2 · memax + rep_u) + 0.35 (cls_s + rep_s), at the published temperatures."""
    batch = make_batch()
    y = batch.labels_both
    expected = {
        "cls_u": 0.65 * losses.swapped_cross_entropy(batch.logits, 0.1, 0.07),
        "memax": 0.65 * 2.0 * losses.mean_entropy_gap(batch.logits, 0.1),
        "cls_s": 0.35 * losses.supervised_cross_entropy(batch.logits, y, 0.1),
        "rep_u": 0.65 * losses.info_nce(batch.projection, 1.0),
        "rep_s": 0.35 * losses.supcon(batch.projection, y, 0.07),
    }
    assert terms(SimGCDConfig(), batch) == pytest.approx({name: value.item() for name, value in expected.items()})


def test_the_teacher_sharpens_over_the_first_thirty_of_two_hundred_epochs() -> None:
    for epoch, temperature in ((0, 0.07), (29, 0.04), (30, 0.04), (199, 0.04)):
        batch = make_batch(epoch=epoch)
        value = 0.65 * losses.swapped_cross_entropy(batch.logits, 0.1, temperature)
        assert terms(SimGCDConfig(), batch)["cls_u"] == pytest.approx(value.item())


@pytest.mark.parametrize(
    ("change", "name", "effect"),
    [
        ({"entropy": "minimise"}, "memax", lambda new, old: new == pytest.approx(-old)),
        ({"memax_weight": 4.0}, "memax", lambda new, old: new == pytest.approx(2 * old)),
        ({"contrastive": "paper"}, "rep_u", lambda new, old: abs(new - old) > 1e-3),
        ({"contrastive": "paper"}, "rep_s", lambda new, old: abs(new - old) > 1e-3),
        ({"tau_u": 0.5}, "rep_u", lambda new, old: abs(new - old) > 1e-3),
        ({"tau_c": 0.5}, "rep_s", lambda new, old: abs(new - old) > 1e-3),
        ({"tau_s": 0.5}, "cls_s", lambda new, old: abs(new - old) > 1e-3),
        ({"teacher_start": 0.05}, "cls_u", lambda new, old: abs(new - old) > 1e-3),
        ({"lambda_": 0.7}, "cls_s", lambda new, old: new == pytest.approx(2 * old)),
    ],
)
def test_every_field_changes_its_own_term(
    change: dict[str, Any], name: str, effect: Callable[[float, float], bool]
) -> None:
    batch = make_batch()
    assert effect(terms(replace(SimGCDConfig(), **change), batch)[name], terms(SimGCDConfig(), batch)[name])


def train(data: GCDData, task: TaskInfo, **options: Any) -> SimGCD:
    method = Small(SimGCDConfig(), task, tiny_context(**options))
    method.fit(data)
    return method


def test_it_learns_what_was_labelled() -> None:
    """Far above the half that guessing among the old classes' colours would give; the labels reach the prototypes."""
    data, task, truth = tiny_task(images=64, seed=3)
    prediction = train(data, task, epochs=30).predict(data.unlabelled)
    old = truth[prediction.ids] < task.k_old
    assert (prediction.cluster == truth[prediction.ids])[old].mean() > 0.9
    assert prediction.anchored


@pytest.mark.parametrize(("classes", "k_old", "images"), [(3, 2, 30), (2, 1, 4), (4, 2, 4), (1, 1, 2)], ids=str)
def test_small_tasks(classes: int, k_old: int, images: int) -> None:
    """One new class, one image per class, no new class at all."""
    data, task, _ = tiny_task(images=images, classes=classes, k_old=k_old)
    prediction = train(data, task).predict(data.unlabelled)
    assert prediction.k_hat == classes
    assert set(prediction.cluster) <= set(range(classes))


def test_without_any_labelled_image() -> None:
    data, task, _ = tiny_task()
    nothing = ImageSet(ids=np.empty(0, dtype=np.int64), store=data.labelled.store)
    bare = GCDData(labelled=nothing, labels=np.empty(0, dtype=np.int64), unlabelled=data.unlabelled)
    assert np.isfinite(train(bare, task).predict(data.unlabelled).embedding).all()  # type: ignore[arg-type]


def test_without_any_image_it_says_so() -> None:
    data, task, _ = tiny_task()
    nothing = ImageSet(ids=np.empty(0, dtype=np.int64), store=data.labelled.store)
    with pytest.raises(TrainingError, match="no image to train on"):
        train(GCDData(labelled=nothing, labels=np.empty(0, dtype=np.int64), unlabelled=nothing), task)


def test_prediction_needs_training() -> None:
    data, task, _ = tiny_task()
    with pytest.raises(TrainingError, match="no prototypes yet"):
        Small(SimGCDConfig(), task, tiny_context()).predict(data.unlabelled)


def test_confidence_and_cluster_agree_with_the_embedding() -> None:
    data, task, _ = tiny_task()
    method = train(data, task)
    prediction = method.predict(data.unlabelled)
    embedding, prototypes = prediction.embedding, method.prototypes.weight.detach().numpy()
    assert embedding is not None
    cosine = (embedding / np.linalg.norm(embedding, axis=1, keepdims=True)) @ (
        prototypes / np.linalg.norm(prototypes, axis=1, keepdims=True)
    ).T
    share = np.exp(cosine / 0.1) / np.exp(cosine / 0.1).sum(axis=1, keepdims=True)
    assert np.array_equal(prediction.cluster, cosine.argmax(axis=1))
    np.testing.assert_allclose(prediction.confidence, share.max(axis=1), rtol=1e-4)  # type: ignore[arg-type]


def test_an_unknown_k_is_estimated() -> None:
    seen: dict[str, Any] = {}

    def estimate_k(labelled: Any, labels: Any, unlabelled: Any, k_old: int, rng: np.random.Generator) -> int:
        seen.update(labelled=labelled.shape, labels=labels, unlabelled=unlabelled.shape, k_old=k_old)
        return 7

    data, task, _ = tiny_task(k_known=False)
    method = SimGCD(SimGCDConfig(), task, replace(tiny_context(epochs=1), estimate_k=estimate_k))
    method.fit(data)
    assert method.predict(data.unlabelled).k_hat == 7
    assert seen["labelled"] == (len(data.labelled), 12)
    assert seen["unlabelled"] == (len(data.unlabelled), 12)
    assert np.array_equal(seen["labels"], data.labels)
    assert seen["k_old"] == 2
