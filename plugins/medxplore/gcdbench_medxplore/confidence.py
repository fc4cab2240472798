"""Confidence of labelled samples: the signals A, W and G, their percentiles Π, and u (Eq. Ab and u_b)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def attention_confidence(first: Tensor, second: Tensor) -> Tensor:
    """A_b (B,): mean attention of the chosen patches of both views, from scores (B, K) each."""
    return (first.mean(dim=1) + second.mean(dim=1)) / 2


def match_confidence(similarity: Tensor, matches: Tensor, weights: Tensor | None = None) -> Tensor:
    """W_b (B,): mean cosine of the matched pairs, weighted where ``weights`` (B, K, K) are given; 0 without a match."""
    chosen = matches.to(similarity) if weights is None else weights * matches
    total = chosen.sum(dim=(1, 2))
    mean = (chosen * similarity).sum(dim=(1, 2)) / total.where(total > 0, torch.ones_like(total))
    return mean.masked_fill(~matches.flatten(1).any(dim=1), 0.0)


def positive_gap(cosines: Tensor, labels: Tensor) -> Tensor:
    """Δ_b (n,): cosine of the true class minus the highest other one; cosines (n, C), labels (n,)."""
    own = labels[:, None]
    positive = cosines.gather(1, own).squeeze(1)
    if cosines.shape[1] == 1:
        return positive + 1  # no other class: as far as a cosine can be from one
    hardest = cosines.scatter(1, own, -torch.inf).amax(dim=1)
    return positive - hardest


class RankPercentile(nn.Module):
    """Π as the rank within the batch, mapped to [0, 1]; equals share the mean rank, a single value gets 0.5.

    The mean of a batch is 0.5 whatever the values: ranks cannot grow while training goes on.
    """

    def forward(self, values: Tensor) -> Tensor:
        """(views, n) -> (views, n) in [0, 1], each view ranked by itself; without a gradient."""
        values = values.detach()
        count = values.shape[-1]
        if count <= 1:
            return torch.full_like(values, 0.5)
        ordered = values.sort(dim=-1).values
        below = torch.searchsorted(ordered, values.contiguous(), right=False)
        up_to = torch.searchsorted(ordered, values.contiguous(), right=True)
        return ((below + up_to - 1).to(values) / 2) / (count - 1)


class RunningPercentile(nn.Module):
    """Π as the position between the running 5th and 95th percentiles, clipped to [0, 1].

    The two quantiles are exponential means over batches (the first batch sets them), so u can rise in training.
    Where they coincide every value gets 0.5.
    """

    low: Tensor
    high: Tensor
    batches: Tensor

    def __init__(self, *, momentum: float = 0.99, low: float = 0.05, high: float = 0.95) -> None:
        super().__init__()
        self.momentum = momentum
        self.shares = (low, high)
        self.register_buffer("low", torch.zeros(()))
        self.register_buffer("high", torch.zeros(()))
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    def forward(self, values: Tensor) -> Tensor:
        """(views, n) -> (views, n) in [0, 1], all views together; updates the quantiles first while training."""
        if self.training and values.numel():
            self._update(values.detach())
        width = (self.high - self.low).to(values)
        if bool(width <= 0):
            return torch.full_like(values, 0.5)
        return ((values - self.low.to(values)) / width).clamp(0.0, 1.0)

    @torch.no_grad()
    def _update(self, values: Tensor) -> None:
        # Early on the mean of the batches so far, later an exponential mean: no start value has to be forgotten.
        keep = min(self.momentum, 1 - 1 / (int(self.batches) + 1))
        for name, share in zip(("low", "high"), self.shares, strict=True):
            quantile = getattr(self, name)
            quantile.mul_(keep).add_(torch.quantile(values, share).to(quantile), alpha=1 - keep)
        self.batches.add_(1)


def fuse(signals: Sequence[Tensor], like: Tensor) -> Tensor:
    """u: the mean of normalised signals, broadcast to the shape of ``like``; without any the margin is fixed, u = 1."""
    if not signals:
        return torch.ones_like(like)
    return torch.stack([signal.expand_as(like) for signal in signals]).mean(dim=0)
