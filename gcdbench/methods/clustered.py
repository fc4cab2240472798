"""The base of methods that train features and cluster them afterwards (GCD, DCCL)."""

from __future__ import annotations

from typing import Any

import torch

from gcdbench.methods.algorithms.clustering import Floats, normalise_rows
from gcdbench.methods.ss_kmeans import cluster_task
from gcdbench.splits.data import GCDData
from gcdbench.training import losses
from gcdbench.training.batch import Batch
from gcdbench.training.parametric import ParametricMethod


class ClusteredMethod(ParametricMethod):
    """Trains by contrast, then finds K centres by GCD's semi-supervised k-means on features of length 1."""

    predictor = "centre/1"

    def __init__(self, config: Any, task: Any, ctx: Any) -> None:
        super().__init__(config, task, ctx)
        self.projector_out = config.projection

    def contrast(self, batch: Batch) -> dict[str, torch.Tensor]:
        """(1 − λ) InfoNCE over all rows and λ SupCon over the labelled ones."""
        c = self.config
        return {
            "rep_u": (1.0 - c.lambda_) * losses.info_nce(batch.projection, c.tau_u),
            "rep_s": c.lambda_ * losses.supcon(batch.projection, batch.labels_both, c.tau_c),
        }

    def losses(self, batch: Batch) -> dict[str, torch.Tensor]:
        """GCD's two terms."""
        return self.contrast(batch)

    def fit(self, data: GCDData) -> None:
        """Train, then cluster."""
        super().fit(data)
        self.place_centres(data)

    def place_centres(self, data: GCDData) -> None:
        """Cluster the training images by their trained features; the centres become the model's head."""
        labelled, unlabelled = normalise_rows(self.embed(data.labelled)), normalise_rows(self.embed(data.unlabelled))
        found = cluster_task(labelled, data, unlabelled, self.k, task=self.task, ctx=self.ctx, effort=self.config)
        self.set_centres(found.centres)

    def set_centres(self, centres: Floats) -> None:
        """Replace the head by these centres (K, C)."""
        self.prototypes.weight = torch.nn.Parameter(torch.from_numpy(centres.copy()).to(self.device))
