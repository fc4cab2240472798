"""CMS: contrastive mean-shift learning (Choi, Kang, Cho, CVPR 2024)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from gcdbench.core.arrays import IntArray
from gcdbench.core.errors import TrainingError
from gcdbench.images.image_set import ImageSet
from gcdbench.methods.algorithms.clustering import Floats, centre_confidence, nearest_centre
from gcdbench.methods.algorithms.estimate_k import matched_share
from gcdbench.methods.algorithms.mean_shift import cut, iterate, mean_shift, shifted_contrast, ward_merges
from gcdbench.methods.configs import CMSConfig
from gcdbench.models.heads import PROJECTED, Centres, Head, ProjectedCentres, make_head
from gcdbench.splits.data import GCDData
from gcdbench.training import losses
from gcdbench.training.batch import Batch
from gcdbench.training.context import derive_seed
from gcdbench.training.method import Prediction, TaskInfo
from gcdbench.training.parametric import CHUNK, ParametricMethod


class CMS(ParametricMethod):
    """Contrast between points moved towards their neighbours; clusters by iterated shifts and Ward's linkage."""

    config: CMSConfig
    anchored = False
    memory: Tensor
    """(2N, P) embeddings of two views of every training image, computed again in each epoch."""

    def __init__(self, config: CMSConfig, task: TaskInfo, ctx: Any) -> None:
        super().__init__(config, task, ctx)
        self.projector_out = config.projection
        self.centres: Floats = np.empty((0, 0), dtype=np.float32)
        self.found: dict[int, int] = {}

    def on_epoch_start(self, epoch: int) -> None:
        """Embed two augmented views of every training image, in evaluation mode."""
        ids, seed = self.train_images.ids, derive_seed(self.ctx.seed, "memory")
        first: list[Tensor] = []
        second: list[Tensor] = []
        for start in range(0, len(ids), CHUNK):
            hidden = self.views.pair(ids[start : start + CHUNK], epoch, seed).to(self.device)
            for part, view in zip((first, second), hidden.chunk(2), strict=True):
                part.append(self._project(view))
        self.memory = torch.cat([*first, *second])

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """Contrast of shifted points, all images, and supervised contrast of the points themselves."""
        c = self.config
        points = F.normalize(batch.projection, dim=1)
        shifted = mean_shift(points, self.memory, k=c.neighbours, alpha=c.alpha)
        contrast = shifted_contrast(shifted, c.tau_u, negatives_only=c.denominator == "code")
        return {
            "rep_u": (1.0 - c.lambda_) * contrast,
            "rep_s": c.lambda_ * losses.supcon(points, batch.labels_both, c.tau_c),
        }

    def fit(self, data: GCDData) -> None:
        """Train, then cluster labelled and unlabelled images together."""
        super().fit(data)
        c, labels = self.config, data.labels
        points = torch.from_numpy(np.concatenate([self.points(data.labelled), self.points(data.unlabelled)]))
        best = iterate(
            points,
            group=lambda moved: cut(ward_merges(moved.numpy()), self.k),
            score=lambda cluster: matched_share(labels, cluster[: len(labels)], self.task.k_old),
            k=c.neighbours,
            alpha=c.alpha,
            patience=c.patience,
            max_shifts=c.max_shifts,
        )
        self.ctx.log({"type": "clustering", "shifts": best.shifts, "labelled_accuracy": best.score, "k": self.k})
        ids = np.concatenate([data.labelled.ids, data.unlabelled.ids])
        self._keep(ids, best.cluster, points.numpy())

    def points(self, images: ImageSet) -> Floats:
        """(N, P) embedding of the test view, of length 1."""
        with torch.no_grad():
            pooled = torch.from_numpy(self.embed(images)).to(self.device)
            return np.asarray(F.normalize(self.projector(pooled), dim=1).cpu().numpy())

    def predict(self, images: ImageSet) -> Prediction:
        """The cluster found for a training image, the cluster with the nearest mean for any other."""
        if not len(self.centres):
            raise TrainingError("This method has no clusters yet.", hint="call fit or load_state_dict first")
        points = self.points(images)
        nearest = nearest_centre(points, self.centres)
        known = np.array([self.found.get(i, -1) for i in images.ids.tolist()], dtype=np.int64)
        cluster = np.where(known >= 0, known, nearest)
        return Prediction(
            ids=images.ids,
            cluster=cluster,
            k_hat=self.k,
            anchored=self.anchored,
            confidence=centre_confidence(points, self.centres, cluster, self.temperature),
            embedding=points,
        )

    def deployed_head(self) -> tuple[str, Head]:
        """The cluster means in the projector's space: what ``predict`` does with an image it was not trained on."""
        return PROJECTED, ProjectedCentres(self.projector, make_head(Centres, self.centres, self.device))

    def state_dict(self) -> dict[str, Tensor]:
        """Tail, projector, cluster means and the clusters of the training images."""
        ids = np.fromiter(self.found, dtype=np.int64, count=len(self.found))
        cluster = np.fromiter(self.found.values(), dtype=np.int64, count=len(self.found))
        return {
            **super().state_dict(),
            **self.auxiliary_state(),
            "centres": torch.from_numpy(self.centres),
            "found": torch.from_numpy(np.stack([ids, cluster])),
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """The inverse of :meth:`state_dict`."""
        super().load_state_dict(state)
        self.load_auxiliary_state(state)
        self.centres = state["centres"].numpy()
        self.found = dict(zip(*state["found"].tolist(), strict=True))
        self.k = len(self.centres)

    def training_state(self) -> dict[str, Any]:
        """The memory of this epoch."""
        return {"memory": self.memory}

    def load_training_state(self, state: dict[str, Any]) -> None:
        """Take it back."""
        self.memory = state["memory"].to(self.device)

    def _project(self, hidden: Tensor) -> Tensor:
        with torch.no_grad():
            return F.normalize(self.projector(self.backbone.run_tail(hidden).pooled).float(), dim=1)

    def _keep(self, ids: IntArray, cluster: IntArray, points: Floats) -> None:
        self.found = dict(zip(ids.tolist(), cluster.tolist(), strict=True))
        self.k = int(cluster.max()) + 1
        total = np.zeros((self.k, points.shape[1]), dtype=np.float32)
        np.add.at(total, cluster, points)
        self.centres = np.asarray(total / np.bincount(cluster)[:, None], dtype=np.float32)
