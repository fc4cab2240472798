"""nguf-approx: a reconstruction of NGUF (Feng et al., IEEE JBHI 2025) from its abstract alone. Not NGUF.

The abstract names four parts: pseudo-labels corrected by neighbours, learning across views from them, a weight of
the correction from distance and density, and distillation across successive batches. Everything else is ours.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from gcdbench.methods.algorithms.neighbours import nearest_neighbours, rows_of
from gcdbench.methods.configs import NGUFApproxConfig
from gcdbench.methods.simgcd import SimGCD
from gcdbench.training.batch import Batch


class NGUFApprox(SimGCD):
    """SimGCD whose pseudo-labels are mixed with those of the nearest training images."""

    config: NGUFApproxConfig
    features: Tensor
    """(N, C) feature of each training image when last seen, of length 1."""
    predictions: Tensor
    """(N, K) its prediction then, mean of both views."""

    def on_epoch_start(self, epoch: int) -> None:
        """Fill the memory once, from the test views, before anything is learnt."""
        if epoch == 0:
            pooled = torch.from_numpy(self.embed(self.train_images)).to(self.device)
            self.features = F.normalize(pooled, dim=1)
            with torch.no_grad():
                self.predictions = F.softmax(self.prototypes(pooled) / self.config.tau_s, dim=1)

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """SimGCD's terms with corrected targets, and the distillation from the memory."""
        c = self.config
        unsupervised = 1.0 - c.lambda_
        own = F.softmax(batch.logits.detach() / self.teacher_temperature(batch.epoch), dim=1)
        target = self._correct(batch, own).roll(len(batch.ids), dims=0)
        log_p = F.log_softmax(batch.logits / c.tau_s, dim=1)
        before = self.predictions[self._positions(batch)].repeat(2, 1)
        return {
            **super().losses(batch),
            "cls_u": unsupervised * -(target * log_p).sum(dim=1).mean(),
            "distill": unsupervised * c.distill_weight * F.kl_div(log_p, before, reduction="batchmean"),
        }

    def _correct(self, batch: Batch, own: Tensor) -> Tensor:
        """(2B, K) targets: (1 − w) own + w · mean of the neighbours' stored predictions, w by density."""
        c = self.config
        # An image must not find its own entry: it would confirm itself.
        cosine, rows = nearest_neighbours(batch.feature.detach(), self.features, c.neighbours + 1)
        itself = rows == self._positions(batch).repeat(2)[:, None]
        counted = ~itself
        # Where the own entry is not among the nearest, the last one is one too many.
        counted[:, -1] &= itself.any(dim=1) | (rows.shape[1] <= c.neighbours)
        share = counted / counted.sum(dim=1, keepdim=True).clamp(min=1)
        guided = (self.predictions[rows] * share[:, :, None]).sum(dim=1)
        weight = density_weights((cosine * share).sum(dim=1), c.neighbour_weight) * counted.any(dim=1)
        return (1.0 - weight[:, None]) * own + weight[:, None] * guided

    def after_step(self, batch: Batch) -> None:
        """Remember what the batch looked like; both views of an image count alike."""
        rows = self._positions(batch)
        first, second = F.normalize(batch.feature.detach(), dim=1).chunk(2)
        self.features[rows] = F.normalize(first + second, dim=1)
        p_first, p_second = F.softmax(batch.logits.detach() / self.config.tau_s, dim=1).chunk(2)
        self.predictions[rows] = (p_first + p_second) / 2

    def _positions(self, batch: Batch) -> Tensor:
        """(B,) row of each image in the memory."""
        return rows_of(batch.ids, self.train_images)

    def training_state(self) -> dict[str, Any]:
        """The memory."""
        return {"features": self.features, "predictions": self.predictions}

    def load_training_state(self, state: dict[str, Any]) -> None:
        """Take it back."""
        self.features = state["features"].to(self.device)
        self.predictions = state["predictions"].to(self.device)


def density_weights(closeness: Tensor, largest: float) -> Tensor:
    """(R,) weights in [0, largest]: the denser an image's neighbourhood among the batch, the more neighbours count.

    closeness: (R,) mean cosine to the neighbours. A batch without differences gives half of ``largest``.
    """
    low, high = closeness.min(), closeness.max()
    spread = high - low
    scaled = (closeness - low) / spread.clamp(min=1e-12)
    return largest * torch.where(spread > 1e-6, scaled, torch.full_like(scaled, 0.5))
