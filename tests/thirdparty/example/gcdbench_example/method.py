"""A method in 40 lines: nearest class mean; the farthest images are spread over the new clusters."""

from dataclasses import dataclass

import numpy as np

from gcdbench.api import GCDData, ImageSet, Prediction, RunContext, TaskInfo


@dataclass(frozen=True, kw_only=True)
class NearestMeanConfig:
    quantile: float = 0.5


class NearestMean:
    def __init__(self, config: NearestMeanConfig, task: TaskInfo, ctx: RunContext) -> None:
        self.config, self.task, self.ctx = config, task, ctx

    def fit(self, data: GCDData) -> None:
        colours = self._colours(data.labelled)
        self.means = np.stack([colours[data.labels == c].mean(axis=0) for c in range(self.task.k_old)])
        distance = self._distances(data.unlabelled).min(axis=1)
        self.threshold = np.quantile(distance, self.config.quantile)

    def predict(self, images: ImageSet) -> Prediction:
        distance = self._distances(images)
        k = self.task.k or self.task.k_old + 1
        new = self.ctx.rng("new").integers(min(self.task.k_old, k - 1), k, len(images))
        cluster = np.where(distance.min(axis=1) > self.threshold, new, distance.argmin(axis=1))
        return Prediction(ids=images.ids, cluster=cluster, k_hat=k, anchored=True)

    def state_dict(self) -> dict:
        return {"means": self.means, "threshold": self.threshold}

    def load_state_dict(self, state: dict) -> None:
        self.means, self.threshold = state["means"], state["threshold"]

    def _colours(self, images: ImageSet) -> np.ndarray:
        return images.pixels().mean(axis=(1, 2), dtype=np.float64)

    def _distances(self, images: ImageSet) -> np.ndarray:
        return np.linalg.norm(self._colours(images)[:, None] - self.means[None], axis=2)
