"""ACAM on a batch: from cosines of labelled samples and their confidence signals to the loss."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from gcdbench_medxplore.confidence import RankPercentile, RunningPercentile, fuse, positive_gap
from gcdbench_medxplore.config import ACAMConfig, Signal
from gcdbench_medxplore.margins import acam_loss, margin_logits


class ACAM(nn.Module):
    """Holds Π (which may keep running percentiles) and applies the margins. Nothing in it learns."""

    def __init__(self, config: ACAMConfig, signals: tuple[Signal, ...]) -> None:
        super().__init__()
        self.config = config
        self.signals = signals
        self.percentiles = nn.ModuleDict({name: _percentile(config) for name in signals})

    def confidence(self, cosines: Tensor, labels: Tensor, signals: Mapping[Signal, Tensor]) -> Tensor:
        """u (V, n) of n labelled samples in V views: cosines (V, n, C), labels (n,), signals A and W (n,) each."""
        views, count, classes = cosines.shape
        gap = positive_gap(cosines.reshape(-1, classes), labels.repeat(views)).view(views, count)
        raw = {name: gap if name == "G" else signals[name].unsqueeze(0) for name in self.signals}
        u = fuse([self.percentiles[name](value) for name, value in raw.items()], gap)
        if self.config.direction == "ambiguous":
            u = 1 - u
        return u.detach() if self.config.detach else u

    def forward(self, cosines: Tensor, labels: Tensor, signals: Mapping[Signal, Tensor]) -> tuple[Tensor, Tensor]:
        """L_ACAM and u; arguments as in :meth:`confidence`. Without a labelled sample the loss is 0."""
        config = self.config
        u = self.confidence(cosines, labels, signals)
        rows = cosines.reshape(-1, cosines.shape[2])
        targets = labels.repeat(len(cosines))
        logits = margin_logits(
            rows,
            targets,
            config.angular_max * u.flatten(),
            config.cosine_max * u.flatten(),
            scale=config.scale,
            gate=config.gate,
            negative_margin=config.negative_margin,
            overshoot=config.overshoot,
            cos_eps=config.cos_eps,
        )
        return acam_loss(logits, targets), u


def labelled_cosines(logits: Tensor, labelled: Tensor, *, views: int) -> Tensor:
    """(V, n, C): cosines of the labelled among B images, from logits (2B, C), view 1 first, and a mask (B,)."""
    return torch.stack([view[labelled] for view in logits.chunk(2)[:views]])


def _percentile(config: ACAMConfig) -> nn.Module:
    if config.percentile == "rank":
        return RankPercentile()
    return RunningPercentile(momentum=config.momentum, low=config.low, high=config.high)
