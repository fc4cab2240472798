"""What a parametric method sees of one step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcdbench.models.backbone import TailOutput


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Two views of B images. Per-image tensors have B rows; per-view tensors have 2B: view 1 first, then view 2.

    ids, labels (−1 where unlabelled), labelled: (B,).
    tail: map X (2B, C, H, W), tokens (2B, N, C) and the backbone's pooled feature (2B, C).
    feature: (2B, C), what the heads were given: ``method.feature(tail)``.
    projection: (2B, P), the projector's output, not normalised.
    logits: (2B, K), cosines between feature and prototypes, in [−1, 1].
    progress: share of the run that is over, in [0, 1]; epoch and step count from 0.
    """

    ids: Tensor
    labels: Tensor
    tail: TailOutput
    feature: Tensor
    projection: Tensor
    logits: Tensor
    progress: float
    epoch: int
    step: int
    k_old: int

    @property
    def labelled(self) -> Tensor:
        """(B,) true where the label is given."""
        return self.labels >= 0

    @property
    def labels_both(self) -> Tensor:
        """(2B,) labels of both views."""
        return torch.cat([self.labels, self.labels])

    @property
    def labelled_both(self) -> Tensor:
        """(2B,) mask of both views."""
        return self.labels_both >= 0
