"""DCCL: contrast among images and among dynamically found concepts (Pu, Zhong, Sebe, CVPR 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from gcdbench.core.arrays import IntArray
from gcdbench.methods.algorithms.communities import find_communities, neighbour_graph
from gcdbench.methods.algorithms.concepts import concept_batch, concept_means, drop_small, update_memory
from gcdbench.methods.clustered import ClusteredMethod
from gcdbench.methods.configs import DCCLConfig
from gcdbench.training import losses
from gcdbench.training.batch import Batch
from gcdbench.training.context import derive_seed
from gcdbench.training.distributed import world
from gcdbench.training.precision import autocast


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The second batch of a step: feature (2R, C) of both views of its R images, and their concepts (2R,)."""

    feature: Tensor
    concepts: Tensor


class DCCL(ClusteredMethod):
    """GCD, and every epoch the communities of the feature graph as classes of their own.

    Each step has two batches: the usual one, of all images, for GCD's terms, and one of concepts for the concept loss.
    """

    config: DCCLConfig
    concepts: Tensor
    """(N,) concept of each training image, −1 for none."""
    memory: Tensor
    """(M, C) direction of each concept."""
    batches_shown = 0
    """Concept batches of this epoch that are over."""
    shown: Shown | None = None
    """The concept batch of this step; None where there is no concept."""

    def on_epoch_start(self, epoch: int) -> None:
        """Find the concepts of this epoch."""
        c = self.config
        features = self.embed(self.train_images)
        graph = neighbour_graph(features, self.train_labels, k=c.neighbours - 1, threshold=c.threshold)
        found = find_communities(graph, c.communities, derive_seed(self.ctx.seed, f"concepts/{epoch}"))
        concepts, count = drop_small(found, c.min_size)
        self.concepts = torch.from_numpy(concepts).to(self.device)
        self.memory = concept_means(torch.from_numpy(features).to(self.device), self.concepts, count)
        self.batches_shown = 0
        self.ctx.log({"type": "concepts", "epoch": epoch, "concepts": count, "outliers": int((concepts < 0).sum())})

    def forward(self, hidden: Tensor, ids: Tensor, labels: Tensor, *, progress: float, epoch: int, step: int) -> Batch:
        """The usual pass, and a second one for the concept batch: each has BatchNorm statistics of its own."""
        batch = super().forward(hidden, ids, labels, progress=progress, epoch=epoch, step=step)
        self.shown = self._show_concepts(len(ids), epoch, step) if len(self.memory) else None
        return batch

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """GCD's terms of the usual batch and the concept loss of the other one."""
        c = self.config
        terms = self.contrast(batch)
        if self.shown is not None:
            cosines = F.normalize(self.shown.feature, dim=1) @ self.memory.T
            loss = losses.supervised_cross_entropy(cosines, self.shown.concepts, c.tau_concept)
            weight = c.concept_start + (c.concept_end - c.concept_start) * min(2.0 * batch.progress, 1.0)
            terms["concept"] = weight * loss
        return terms

    def after_step(self, batch: Batch) -> None:
        """Move the concepts towards what the second batch showed of them."""
        if self.shown is not None:
            rows = F.normalize(self.shown.feature.detach(), dim=1)
            self.memory = update_memory(self.memory, rows, self.shown.concepts, self.config.momentum)
        self.shown = None
        self.batches_shown += 1

    def _show_concepts(self, images: int, epoch: int, step: int) -> Shown:
        """The second batch, as large as the first as far as whole concepts allow."""
        chosen = self._choose(images, epoch)
        here = world()
        share = len(chosen) // here.size
        own = chosen[here.rank * share : (here.rank + 1) * share]
        hidden = self.views.pair(self.train_images.ids[own], step, derive_seed(self.ctx.seed, "concept-views"))
        with autocast(self.ctx.device, self.ctx.precision):
            feature = self.feature(self.backbone.run_tail(hidden.to(self.device)))
        concepts = self.concepts[torch.from_numpy(chosen).to(self.device)]
        return Shown(feature=self.share(feature.float()), concepts=torch.cat([concepts, concepts]))

    def _choose(self, images: int, epoch: int) -> IntArray:
        """Positions of the second batch: a function of the seed, the epoch and the step within it."""
        chosen = concept_batch(
            self.concepts.cpu().numpy(),
            self.batches_shown,
            images=images,
            per_concept=self.config.per_concept,
            seed=derive_seed(self.ctx.seed, f"concept-batches/{epoch}"),
        )
        # Every process must get the same number of images.
        size = world().size
        return np.resize(chosen, max(len(chosen) // size, 1) * size)

    def training_state(self) -> dict[str, Any]:
        """Concepts and their directions, found once in an epoch, and how many batches have shown them."""
        return {"concepts": self.concepts, "memory": self.memory, "batches_shown": self.batches_shown}

    def load_training_state(self, state: dict[str, Any]) -> None:
        """Take them back."""
        self.concepts, self.memory = state["concepts"].to(self.device), state["memory"].to(self.device)
        self.batches_shown = state["batches_shown"]
