"""Every built-in method keeps to what the harness promises; and the checks notice a method that does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gcdbench.images.image_set import ImageSet
from gcdbench.methods.builtin import METHODS
from gcdbench.methods.configs import KMeansConfig, SimGCDConfig
from gcdbench.methods.kmeans import KMeans
from gcdbench.methods.simgcd import SimGCD
from gcdbench.models.heads import nearest_prototype
from gcdbench.plugins.specs import MethodSpec, load_attribute
from gcdbench.splits.data import GCDData
from gcdbench.testing import conformance
from gcdbench.training.batch import Batch
from gcdbench.training.method import Prediction, TaskInfo


@pytest.mark.parametrize("check", conformance.CHECKS)
@pytest.mark.parametrize("spec", METHODS, ids=lambda spec: spec.name)
def test_built_in_methods_conform(spec: MethodSpec, check: str, tmp_path: Path) -> None:
    assert spec.config is not None
    settings = {}
    if (spec.name, check) == ("rs-plus", "class-permutation"):
        # Among the old outputs alone nothing tells a short training that a labelled image is not of a new class.
        settings = {"supervised_outputs": "all"}
    conformance.run_check(check, spec.load(), load_attribute(spec.config)(**settings), folder=tmp_path)


class Broken(KMeans):
    """K-means with one vice, named by the config."""

    def __init__(self, config: Any, task: TaskInfo, ctx: Any) -> None:
        super().__init__(KMeansConfig(n_init=1), task, ctx)
        self.vice = config

    def fit(self, data: GCDData) -> None:
        super().fit(data)
        assert self.centres is not None
        if self.vice == "global-stream":
            self.centres = self.centres + np.random.rand(*self.centres.shape).astype(np.float32)  # noqa: NPY002
        if self.vice == "names":
            self.centres[0] = self.centres[-1 if data.labels[0] else 0]

    def predict(self, images: ImageSet) -> Prediction:
        made = super().predict(images)
        cluster = made.cluster + (made.k_hat if self.vice == "range" else 0)
        ids = made.ids[::-1] if self.vice == "order" else made.ids
        k_hat = made.k_hat - 1 if self.vice == "k" else made.k_hat
        return Prediction(ids=ids, cluster=np.minimum(cluster, k_hat - 1) if self.vice == "k" else cluster,
                          k_hat=k_hat, anchored=False)  # fmt: skip


@pytest.mark.parametrize(
    ("vice", "check"),
    [
        ("range", "interface"),
        ("order", "interface"),
        ("k", "unequal-k"),
        ("global-stream", "determinism"),
        ("names", "class-permutation"),
    ],
)
def test_a_method_with_a_vice_is_found_out(vice: str, check: str, tmp_path: Path) -> None:
    with pytest.raises(conformance.ConformanceError):
        conformance.run_check(check, Broken, vice, folder=tmp_path)


class OnAnAugmentedView(SimGCD):
    """Predicts on the first of the views that it was trained on, as a mistaken call of the view source would."""

    def predict(self, images: ImageSet) -> Prediction:
        super().predict(images)  # opens the views
        self.backbone.eval()
        with torch.no_grad():
            hidden = self.views.pair(images.ids, 0, 0)[: len(images)]
            pooled = self.backbone.run_tail(hidden).pooled.numpy()
        cluster, _ = nearest_prototype(pooled, self.prototypes, self.temperature)
        return Prediction(ids=images.ids, cluster=cluster, k_hat=self.k, anchored=True, embedding=pooled)


class WithViewsOfItsOwn(KMeans):
    """Turns images around by a stream of its own before it looks at them."""

    def points(self, images: ImageSet) -> Any:
        pixels = images.pixels().astype(np.float32)
        flipped = self.ctx.rng("flips").random(len(images)) < 0.5
        pixels[flipped] = pixels[flipped, :, ::-1]
        return pixels.reshape(len(images), -1)


@pytest.mark.parametrize(
    ("method", "config"), [(OnAnAugmentedView, SimGCDConfig()), (WithViewsOfItsOwn, KMeansConfig(n_init=1))]
)
def test_a_method_that_predicts_on_an_augmented_view_is_found_out(
    method: type[Any], config: object, tmp_path: Path
) -> None:
    with pytest.raises(conformance.ConformanceError, match="test view"):
        conformance.run_check("test-view", method, config, folder=tmp_path)


class Forgetful(SimGCD):
    """Keeps a count between steps that no checkpoint knows of."""

    count = 0

    def losses(self, batch: Batch) -> Any:
        self.count += 1
        return {**super().losses(batch), "count": 0.1 * self.count * batch.logits.square().mean()}


def test_state_that_a_checkpoint_misses_is_found_out(tmp_path: Path) -> None:
    with pytest.raises(conformance.ConformanceError, match="resumed"):
        conformance.run_check("resume", Forgetful, SimGCDConfig(), folder=tmp_path)


class Peeking(KMeans):
    """Reaches for the hidden labels through the frames of its callers."""

    def fit(self, data: GCDData) -> None:
        import sys

        super().fit(data)
        frame = sys._getframe()
        while frame is not None and "truth" not in frame.f_locals:
            frame = frame.f_back  # type: ignore[assignment]
        assert self.centres is not None
        truth = frame.f_locals["truth"][data.unlabelled.ids]
        self.centres = np.stack([self.points(data.unlabelled)[truth == c].mean(axis=0) for c in range(4)])


def test_a_method_that_looks_at_hidden_labels_is_found_out(tmp_path: Path) -> None:
    with pytest.raises(conformance.ConformanceError, match="hidden labels"):
        conformance.run_check("no-leakage", Peeking, KMeansConfig(n_init=1), folder=tmp_path)
