"""Batches with known numbers for tests of losses."""

from __future__ import annotations

import torch
from torch import Tensor

from gcdbench.models.backbone import TailOutput
from gcdbench.training.batch import Batch


def make_batch(
    labels: list[int], *, k: int, k_old: int, channels: int = 6, progress: float = 0.0, epoch: int = 0, seed: int = 0
) -> Batch:
    """Two views of random rows in float64, one image for each of ``labels``; ids count from 0."""
    generator = torch.Generator().manual_seed(seed)
    rows = 2 * len(labels)

    def draw(width: int) -> Tensor:
        return torch.randn(rows, width, generator=generator, dtype=torch.float64)

    feature = draw(channels).requires_grad_()
    return Batch(
        ids=torch.arange(len(labels)),
        labels=torch.tensor(labels),
        tail=TailOutput(map=feature[:, :, None, None], pooled=feature),
        feature=feature,
        projection=draw(channels).requires_grad_(),
        logits=torch.tanh(draw(k)).requires_grad_(),
        progress=progress,
        epoch=epoch,
        step=0,
        k_old=k_old,
    )
