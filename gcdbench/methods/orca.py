"""ORCA: an uncertainty-adaptive margin and a pairwise objective (Cao et al., ICLR 2022), under our protocol."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from gcdbench.images.image_set import ImageSet
from gcdbench.methods.algorithms.neighbours import nearest_neighbours
from gcdbench.methods.configs import ORCAConfig
from gcdbench.models.heads import nearest_prototype
from gcdbench.training import losses
from gcdbench.training.batch import Batch
from gcdbench.training.parametric import ParametricMethod


class ORCA(ParametricMethod):
    """Slows the learning of old classes down while the unlabelled images are still uncertain."""

    config: ORCAConfig
    margin: float = 0.0

    def on_epoch_start(self, epoch: int) -> None:
        """Measure the uncertainty of the unlabelled images: one minus their mean confidence."""
        c = self.config
        if c.fixed_margin is not None:
            self.margin = c.fixed_margin
            return
        unlabelled = ImageSet(ids=self.train_images.ids[self.train_labels < 0], store=self.train_images.store)
        if len(unlabelled):
            _, confidence = nearest_prototype(self.embed(unlabelled), self.prototypes, c.tau)
            self.margin = min(1.0 - float(confidence.mean()), c.max_margin)

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """Supervised term with margin, pairwise term, and the entropy of the mean prediction; all of view 1."""
        c = self.config
        first, second = batch.logits.chunk(2)
        p_first, p_second = F.softmax(first / c.tau, dim=1), F.softmax(second / c.tau, dim=1)
        partner = choose_partners(batch.feature.detach().chunk(2)[0], batch.labels)
        agreement = (p_first * p_second[partner]).sum(dim=1)
        eased = first + self.margin * F.one_hot(batch.labels.clamp(min=0), self.k)
        return {
            "given": losses.supervised_cross_entropy(eased, batch.labels, c.tau),
            "pairs": -c.pair_weight * (agreement + 1e-7).log().mean(),
            "entropy": c.entropy_weight * losses.mean_entropy_gap(first, c.tau),
        }

    def training_state(self) -> dict[str, Any]:
        """The margin of this epoch."""
        return {"margin": self.margin}

    def load_training_state(self, state: dict[str, Any]) -> None:
        """Take it back."""
        self.margin = state["margin"]


def choose_partners(feature: Tensor, labels: Tensor) -> Tensor:
    """(B,) row that each row should agree with.

    A labelled row: another labelled one of its class, drawn at random, or itself if it is the only one.
    An unlabelled row: the nearest other row by cosine, labelled or not; itself in a batch of one.
    """
    count = len(labels)
    itself = torch.arange(count, device=labels.device)
    if count == 1:
        return itself
    _, nearest = nearest_neighbours(feature, feature, 1, exclude_self=True)
    same = (labels[:, None] == labels[None, :]) & (labels >= 0)[:, None]
    same[itself, itself] = False
    # The largest of random numbers over the candidates is a uniform draw among them.
    drawn = torch.rand(count, count, device=labels.device).masked_fill(~same, -1.0).argmax(dim=1)
    mate = torch.where(same.any(dim=1), drawn, itself)
    return torch.where(labels >= 0, mate, nearest[:, 0])
