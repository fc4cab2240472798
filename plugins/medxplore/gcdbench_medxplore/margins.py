"""Adaptive angular and cosine margins (Eq. m, acam_logit) and the ACAM loss (Eq. acam)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from gcdbench_medxplore.config import NegativeMargin, Overshoot


def margin_cosine(cosine: Tensor, margin: Tensor, *, overshoot: Overshoot = "clamp", cos_eps: float = 1e-6) -> Tensor:
    """cos(θ + m) from cos θ (n,) and m (n,) in [0, π].

    sin θ is taken at cosines clamped to ±(1 − cos_eps): its slope is infinite at ±1. With ``"clamp"`` θ + m stops
    at π, where the cosine is −1; ``"wrap"`` is the formula as written, whose cosine grows again beyond π and so
    rewards the worst samples.
    """
    bounded = cosine.clamp(-1 + cos_eps, 1 - cos_eps)
    shifted = cosine * margin.cos() - (1 - bounded.square()).sqrt() * margin.sin()
    if overshoot == "wrap":
        return shifted
    return torch.where(cosine < -margin.cos(), -torch.ones_like(shifted), shifted)


def margin_logits(
    cosines: Tensor,
    labels: Tensor,
    angular: Tensor,
    cosine: Tensor,
    *,
    scale: float = 10.0,
    gate: float = 0.3,
    negative_margin: NegativeMargin = "as-written",
    overshoot: Overshoot = "clamp",
    cos_eps: float = 1e-6,
) -> Tensor:
    """l (n, C) from cosines z (n, C), labels (n,), margins m_a and m_c (n,).

    Only negatives above the gate δ′ are moved: lowered as the equation has it, or raised, as a margin would.
    """
    own = labels[:, None]
    positive = margin_cosine(
        cosines.gather(1, own).squeeze(1), angular, overshoot=overshoot, cos_eps=cos_eps
    ).unsqueeze(1)
    sign = -1.0 if negative_margin == "as-written" else 1.0
    negatives = cosines + sign * (cosine / (1 - gate))[:, None] * (cosines - gate).clamp_min(0)
    return scale * negatives.scatter(1, own, positive)


@torch.no_grad()
def hard_negatives(cosines: Tensor, labels: Tensor, gate: float) -> Tensor:
    """Share of the other classes' cosines that lie above the gate δ′; cosines (V, n, C), labels (n,).

    Where it is 0 the cosine margin moves nothing, whatever its size and direction.
    """
    own = labels.expand(cosines.shape[:2]).unsqueeze(2)
    others = cosines.shape[2] - 1
    above = (cosines.scatter(2, own, -torch.inf) > gate).sum()
    return above / max(1, others * own.numel())


def acam_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy of margin logits (n, C); exactly 0, still on the graph, without one labelled sample."""
    if len(labels) == 0:
        return logits.sum()
    return F.cross_entropy(logits, labels)
