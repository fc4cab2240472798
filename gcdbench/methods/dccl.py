"""DCCL: contrast among images and among dynamically found concepts (Pu, Zhong, Sebe, CVPR 2023)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from gcdbench.core.arrays import IntArray
from gcdbench.core.config import Bounds, Count, NotNegative, Positive, Share
from gcdbench.methods.algorithms.communities import Algorithm, default_algorithm, find_communities, neighbour_graph
from gcdbench.methods.algorithms.neighbours import rows_of
from gcdbench.methods.clustered import ClusteredConfig, ClusteredMethod
from gcdbench.training import losses
from gcdbench.training.batch import Batch
from gcdbench.training.context import derive_seed
from gcdbench.training.sampler import balanced_order


@dataclass(frozen=True, kw_only=True)
class DCCLConfig(ClusteredConfig):
    """GCD's terms and the values of DCCL's only published script (CUB).

    neighbours, threshold: the graph; min_size: smaller communities are no concepts; concept_start and concept_end:
    weight of the concept loss, rising over the first half of the run; momentum: what a concept keeps of itself.
    """

    communities: Algorithm = field(default_factory=default_algorithm)
    neighbours: Count = 15
    threshold: Annotated[float, Bounds(least=-1, most=1)] = 0.6
    min_size: Count = 5
    per_concept: Count = 16
    tau_concept: Positive = 0.05
    concept_start: NotNegative = 0.04
    concept_end: NotNegative = 0.4
    momentum: Share = 0.1


class DCCL(ClusteredMethod):
    """GCD, and every epoch the communities of the feature graph as classes of their own."""

    config: DCCLConfig
    concepts: Tensor
    """(N,) concept of each training image, −1 for none."""
    memory: Tensor
    """(M, C) direction of each concept."""

    def on_epoch_start(self, epoch: int) -> None:
        """Find the concepts of this epoch."""
        c = self.config
        features = self.embed(self.train_images)
        graph = neighbour_graph(features, self.train_labels, k=c.neighbours, threshold=c.threshold)
        found = find_communities(graph, c.communities, derive_seed(self.ctx.seed, f"concepts/{epoch}"))
        concepts, count = drop_small(found, c.min_size)
        self.concepts = torch.from_numpy(concepts).to(self.device)
        self.memory = concept_means(torch.from_numpy(features).to(self.device), self.concepts, count)
        self.ctx.log({"type": "concepts", "epoch": epoch, "concepts": count, "outliers": int((concepts < 0).sum())})

    def sampler(self, labels: IntArray, epoch: int, generator: np.random.Generator) -> IntArray:
        """``per_concept`` images of one concept after the other; without concepts, the usual order."""
        if not len(self.memory):
            return balanced_order(labels, generator)
        return concept_order(self.concepts.cpu().numpy(), self.config.per_concept, generator)

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """GCD's terms and the concept loss."""
        c = self.config
        terms = self.contrast(batch)
        if len(self.memory):
            cosines = F.normalize(batch.feature, dim=1) @ self.memory.T
            loss = losses.supervised_cross_entropy(cosines, self._concepts_of(batch), c.tau_concept)
            weight = c.concept_start + (c.concept_end - c.concept_start) * min(2.0 * batch.progress, 1.0)
            terms["concept"] = weight * loss
        return terms

    def after_step(self, batch: Batch) -> None:
        """Move the concepts towards what the batch showed of them."""
        rows, concepts = F.normalize(batch.feature.detach(), dim=1), self._concepts_of(batch)
        self.memory = update_memory(self.memory, rows, concepts, self.config.momentum)

    def _concepts_of(self, batch: Batch) -> Tensor:
        """(2B,) concept of each row."""
        own = self.concepts[rows_of(batch.ids, self.train_images)]
        return torch.cat([own, own])

    def training_state(self) -> dict[str, Any]:
        """Concepts and their directions, found once an epoch."""
        return {"concepts": self.concepts, "memory": self.memory}

    def load_training_state(self, state: dict[str, Any]) -> None:
        """Take them back."""
        self.concepts, self.memory = state["concepts"].to(self.device), state["memory"].to(self.device)


def drop_small(groups: IntArray, min_size: int) -> tuple[IntArray, int]:
    """Renumber groups of at least ``min_size`` members from 0; members of smaller ones get −1. Also their number."""
    kept = np.flatnonzero(np.bincount(groups) >= min_size)
    number = np.full(int(groups.max()) + 1, -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    return number[groups], len(kept)


def concept_means(features: Tensor, concepts: Tensor, count: int) -> Tensor:
    """(M, C) mean direction of the members of each concept, of length 1."""
    member = concepts >= 0
    total = features.new_zeros(count, features.shape[1])
    total.index_add_(0, concepts[member], F.normalize(features[member], dim=1))
    return F.normalize(total, dim=1)


def update_memory(memory: Tensor, rows: Tensor, concepts: Tensor, momentum: float) -> Tensor:
    """Row after row: direction of its concept ← m · direction + (1 − m) · row, back to length 1.

    rows: (R, C) of length 1; concepts: (R,), −1 for none. Rows of different concepts do not touch each other,
    so all first rows of each concept move together, then all second ones, and so on.
    """
    memory = memory.clone()
    chosen = torch.nonzero(concepts >= 0)[:, 0]
    by_concept = concepts[chosen].argsort(stable=True)
    chosen = chosen[by_concept]
    of = concepts[chosen]
    place = torch.arange(len(of), device=of.device) - torch.searchsorted(of, of)
    for turn in range(int(place.max()) + 1 if len(of) else 0):
        now = place == turn
        moved = momentum * memory[of[now]] + (1.0 - momentum) * rows[chosen[now]]
        memory[of[now]] = F.normalize(moved, dim=1)
    return memory


def concept_order(concepts: IntArray, per_concept: int, generator: np.random.Generator) -> IntArray:
    """About N positions, ``per_concept`` of one concept at a time, concepts in random turns.

    A concept with fewer members shows some of them twice.
    """
    members = [np.flatnonzero(concepts == concept) for concept in range(int(concepts.max()) + 1)]
    turns = -(-len(concepts) // per_concept)
    rounds = [generator.permutation(len(members)) for _ in range(-(-turns // len(members)))]
    parts = [
        generator.choice(members[concept], per_concept, replace=len(members[concept]) < per_concept)
        for concept in np.concatenate(rounds)[:turns]
    ]
    return np.concatenate(parts).astype(np.int64)
