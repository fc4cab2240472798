"""ProtoGCD: prototypes with pseudo-labels that harden with confidence and time (Ma et al., TPAMI 2025)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from gcdbench.methods.configs import ProtoGCDConfig
from gcdbench.training import losses
from gcdbench.training.batch import Batch
from gcdbench.training.method import TaskInfo
from gcdbench.training.parametric import ParametricMethod
from gcdbench.training.schedules import ramp

if TYPE_CHECKING:
    from gcdbench.training.context import RunContext

TIE = 1e-6
"""Keeps the ratio of the two largest probabilities finite."""


class ProtoGCD(ParametricMethod):
    """SimGCD's losses, but the most confident images teach with a label instead of a distribution, more of them with
    every epoch, and prototypes keep away from each other."""

    config: ProtoGCDConfig

    def __init__(self, config: ProtoGCDConfig, task: TaskInfo, ctx: RunContext) -> None:
        super().__init__(config, task, ctx)
        self.temperature = config.tau

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """Both regularisers carry the unsupervised weight, as the pseudo-labels do."""
        c = self.config
        labels = batch.labels_both
        unsupervised = 1.0 - c.lambda_
        share = ramp(batch.epoch, self.ctx.training.epochs, start=c.hard_start, end=c.hard_end, share=c.hard_ramp)
        return {
            "cls_u": unsupervised * adaptive_cross_entropy(batch.logits, c.tau, c.tau_teacher, share),
            "entropy": unsupervised * c.entropy_weight * losses.mean_entropy_gap(batch.logits, c.tau),
            "separation": unsupervised * c.separation_weight * prototype_separation(self.prototypes.weight, c.tau),
            "cls_s": c.lambda_ * losses.supervised_cross_entropy(batch.logits, labels, c.tau),
            "rep_u": unsupervised * losses.info_nce(batch.projection, c.tau_u),
            "rep_s": c.lambda_ * losses.supcon(batch.projection, labels, c.tau_c),
        }


def adaptive_targets(logits: Tensor, temperature: float, share: float) -> Tensor:
    """(B, K) what the images of one view teach: a label for the ``share`` that is most confident, else a distribution.

    An image is confident if its first class is much more probable than its second. logits: (B, K), cosines.
    """
    soft = F.softmax(logits.detach() / temperature, dim=1)
    largest = soft.topk(min(2, soft.shape[1]), dim=1).values
    confidence = largest[:, 0] / (largest[:, -1] + TIE)
    # Ranks instead of a threshold: exactly that many, whatever the values are.
    rank = confidence.argsort(descending=True, stable=True).argsort()
    hard = F.one_hot(soft.argmax(dim=1), soft.shape[1]).to(soft.dtype)
    return torch.where((rank < int(len(soft) * share))[:, None], hard, soft)


def adaptive_cross_entropy(logits: Tensor, temperature: float, teacher_temperature: float, share: float) -> Tensor:
    """Each view is taught by the other, mean over both and over all images, labelled ones included.

    logits: (2B, K), cosines.
    """
    first, second = (adaptive_targets(view, teacher_temperature, share) for view in logits.chunk(2))
    target = torch.cat([second, first])
    return -(target * F.log_softmax(logits / temperature, dim=1)).sum(dim=1).mean()


def prototype_separation(prototypes: Tensor, temperature: float) -> Tensor:
    """Mean over prototypes of log mean over the others of exp(cosine / τ): small where they point apart.

    0 for a single prototype, which has no others. prototypes: (K, C), of any length.
    """
    unit = F.normalize(prototypes, dim=1)
    count = len(unit)
    if count == 1:
        return unit.sum() * 0.0
    itself = torch.eye(count, dtype=torch.bool, device=unit.device)
    cosine = (unit @ unit.T / temperature).masked_fill(itself, -math.inf)
    return (torch.logsumexp(cosine, dim=1) - math.log(count - 1)).mean()
