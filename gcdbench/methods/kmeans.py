"""K-means on frozen features, and on pixels: what clustering gives without any training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gcdbench.core.errors import TrainingError
from gcdbench.images.image_set import ImageSet
from gcdbench.methods.algorithms.clustering import (
    Clustering,
    Floats,
    centre_confidence,
    constrained_kmeans,
    nearest_centre,
    normalise_rows,
)
from gcdbench.splits.data import GCDData
from gcdbench.training.method import Prediction, TaskInfo

if TYPE_CHECKING:
    from gcdbench.training.context import RunContext

_CHUNK = 256

TEMPERATURE = 0.1
"""Divides distances, in units of a feature's mean squared length, where they become a confidence."""


class CentreMethod:
    """Clusters the unlabelled images; labels are not used, so clusters are tied to no class."""

    anchored = False

    def __init__(self, config: Any, task: TaskInfo, ctx: RunContext) -> None:
        self.config = config
        self.task = task
        self.ctx = ctx
        self.centres: Floats | None = None
        self.temperature = TEMPERATURE

    def points(self, images: ImageSet) -> Floats:
        """(N, D) what is clustered."""
        raise NotImplementedError

    def cluster(self, labelled: Floats, data: GCDData, unlabelled: Floats, k: int) -> Clustering:
        """Find K centres."""
        c = self.config
        return constrained_kmeans(
            unlabelled, k, self.ctx.rng("kmeans"), n_init=c.n_init, max_iter=c.max_iter, tol=c.tol
        )

    def fit(self, data: GCDData) -> None:
        """Cluster the training images."""
        labelled, unlabelled = self.points(data.labelled), self.points(data.unlabelled)
        k = self.task.k
        if k is None:
            from gcdbench.methods.algorithms.estimate_k import estimate_k

            k = estimate_k(labelled, data.labels, unlabelled, self.task.k_old, self.ctx.rng("estimate-k"))
        found = self.cluster(labelled, data, unlabelled, k)
        self.centres = found.centres
        self.temperature = TEMPERATURE * max(_mean_square(labelled, unlabelled), 1e-12)
        self.ctx.log({"type": "clustering", "inertia": found.inertia, "iterations": found.iterations, "k": k})

    def predict(self, images: ImageSet) -> Prediction:
        """Nearest centre of each image."""
        if self.centres is None:
            raise TrainingError("This method has no centres yet.", hint="call fit or load_state_dict first")
        points = self.points(images)
        cluster = nearest_centre(points, self.centres)
        return Prediction(
            ids=images.ids,
            cluster=cluster,
            k_hat=len(self.centres),
            anchored=self.anchored,
            confidence=centre_confidence(points, self.centres, cluster, self.temperature),
            embedding=points,
        )

    def state_dict(self) -> dict[str, Any]:
        """The centres, and what turns distances into a confidence."""
        import torch

        if self.centres is None:
            return {}
        return {"centres": torch.from_numpy(self.centres), "temperature": torch.tensor(self.temperature)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take them back."""
        self.centres = np.asarray(state["centres"], dtype=np.float32)
        self.temperature = float(state.get("temperature", TEMPERATURE))


def _mean_square(*parts: Floats) -> float:
    return float(np.concatenate([np.square(points).sum(axis=1) for points in parts]).mean())


class KMeans(CentreMethod):
    """K-means on features of the pretrained network."""

    def __init__(self, config: Any, task: TaskInfo, ctx: RunContext) -> None:
        super().__init__(config, task, ctx)
        self._data: GCDData | None = None

    def points(self, images: ImageSet) -> Floats:
        """(N, C) features, of length 1 unless the config says otherwise."""
        from gcdbench.views.bank import frozen_features

        features = frozen_features(self.ctx, images)
        return normalise_rows(features) if self.config.normalise else features

    def fit(self, data: GCDData) -> None:
        """Cluster the training images, and remember which they were."""
        super().fit(data)
        self._data = data

    def save_model(self, directory: Path) -> None:
        """The pretrained network, as it is, and the centres; a new image goes to the nearest."""
        from gcdbench.training.saving import save_centres

        if self.centres is None or self._data is None:
            raise TrainingError("This method has no centres yet.", hint="call fit first")
        save_centres(self, self.centres, self._data, directory)


class PixelsKMeans(CentreMethod):
    """K-means on small copies of the images: the floor that any use of a network must rise above.

    It has no network, so it leaves no model behind.
    """

    def points(self, images: ImageSet) -> Floats:
        """(N, side · side · 3) mean colours of a grid, in [0, 1]."""
        side = min(self.config.side, images.size)
        edges = np.linspace(0, images.size, side + 1).astype(np.int64)
        length = np.diff(edges).astype(np.float32)
        area = (length[:, None] * length)[:, :, None] * np.float32(255.0)
        small = np.empty((len(images), side, side, 3), dtype=np.float32)
        for start in range(0, len(images), _CHUNK):
            pixels = images.pixels(slice(start, start + _CHUNK)).astype(np.float32)
            rows = np.add.reduceat(pixels, edges[:-1], axis=1)
            cells = np.add.reduceat(rows, edges[:-1], axis=2)
            small[start : start + _CHUNK] = cells / area
        return small.reshape(len(images), -1)
