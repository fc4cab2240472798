"""The whole way of an image through a saved model, as one module of plain operations."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gcdbench.models.backbone import Backbone, TailOutput
from gcdbench.models.heads import Head
from gcdbench.models.reference import Reference


class Answer(NamedTuple):
    """For B images: cluster and confidence (B,), probabilities (B, K), feature (B, C), likeness (B, K_old) to each
    known class, and unlike_score (B,) in units of the threshold, NaN where there is nothing to compare with."""

    cluster: Tensor
    confidence: Tensor
    probabilities: Tensor
    feature: Tensor
    likeness: Tensor
    unlike_score: Tensor


class Network(nn.Module):
    """Standardise, prefix, tail, head, and the comparison with the training images; evaluation only.

    half: round the prefix's output to float16, as a view bank stores it: a model then sees new images exactly as it
    saw those of its run.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        backbone: Backbone,
        head: Head,
        reference: Reference,
        *,
        temperature: float,
        half: bool,
        mean: tuple[float, float, float],
        std: tuple[float, float, float],
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head
        self.reference = reference
        self.temperature = temperature
        self.half_prefix = half
        self.register_buffer("mean", torch.tensor(mean)[:, None, None])
        self.register_buffer("std", torch.tensor(std)[:, None, None])
        self.requires_grad_(False).eval()

    def run_tail(self, images: Tensor) -> tuple[Tensor, TailOutput]:
        """(B, 3, S, S) RGB in [0, 1] -> what prefix and tail make of it."""
        hidden = self.backbone.prefix((images - self.mean) / self.std)
        if self.half_prefix:
            hidden = hidden.to(torch.float16).to(torch.float32)
        return hidden, self.backbone.run_tail(hidden)

    def forward(self, images: Tensor) -> Answer:
        """(B, 3, S, S) RGB in [0, 1] -> the answer."""
        hidden, tail = self.run_tail(images)
        probabilities = F.softmax(self.head(tail.pooled) / self.temperature, dim=1)
        confidence, cluster = probabilities.max(dim=1)
        likeness, unlike = self.reference(tail.pooled, hidden)
        return Answer(
            cluster=cluster,
            confidence=confidence,
            probabilities=probabilities,
            feature=tail.pooled,
            likeness=likeness,
            unlike_score=unlike,
        )
