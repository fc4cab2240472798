"""The two heads of a parametric method: a projector for contrastive losses and cosine prototypes."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from gcdbench.core.arrays import IntArray


class Projector(nn.Module):
    """MLP channels -> hidden -> hidden -> out with GELU and without BatchNorm, as in SimGCD; used in training only."""

    def __init__(self, channels: int, generator: torch.Generator, *, hidden: int = 2048, out: int = 256) -> None:
        super().__init__()
        sizes = (channels, hidden, hidden, out)
        self.layers = nn.ModuleList(_Affine(before, after, generator) for before, after in pairwise(sizes))

    def forward(self, feature: Tensor) -> Tensor:
        """(R, C) -> (R, P), not normalised."""
        *inner, last = self.layers
        for layer in inner:
            feature = F.gelu(layer(feature))
        out: Tensor = last(feature)
        return out


class _Affine(nn.Module):
    """A linear layer whose first weights come from a generator and from nowhere else."""

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.trunc_normal_(self.weight, std=0.02, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


class Prototypes(nn.Module):
    """K directions; the output is the cosine between each of them and the feature (weight normalisation with g = 1)."""

    def __init__(self, channels: int, k: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(channels)
        self.weight = nn.Parameter(torch.empty(k, channels).uniform_(-bound, bound, generator=generator))

    @property
    def k(self) -> int:
        """Number of prototypes."""
        return len(self.weight)

    def forward(self, feature: Tensor) -> Tensor:
        """(R, C) -> (R, K), cosines in [−1, 1]."""
        return F.linear(F.normalize(feature, dim=1), F.normalize(self.weight, dim=1))


class Centres(Prototypes):
    """K cluster centres; the output is x·c − |c|²/2 for features x of length 1, largest at the nearest centre.

    For methods that cluster trained features: centres of k-means are no directions, their lengths count.
    """

    def forward(self, feature: Tensor) -> Tensor:
        """(R, C) -> (R, K), half of 1 − |x − c|²."""
        return F.linear(F.normalize(feature, dim=1), self.weight) - self.weight.square().sum(dim=1) / 2


ROWS_AT_ONCE = 16_384
"""Features that are compared with the prototypes at once: a normalised copy of all would be as large as they are."""

HEADS: dict[str, type[Prototypes]] = {"cosine/1": Prototypes, "centre/1": Centres}
"""Heads by the name a saved model gives them."""


def nearest_prototype(
    pooled: NDArray[np.float32], prototypes: Prototypes, temperature: float
) -> tuple[IntArray, NDArray[np.float32]]:
    """Cluster and confidence (softmax of cosine / temperature) of each row; ties go to the first prototype."""
    cluster, confidence = np.empty(len(pooled), dtype=np.int64), np.empty(len(pooled), dtype=np.float32)
    with torch.no_grad():
        for start in range(0, len(pooled), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            logits = prototypes(torch.from_numpy(pooled[rows]).to(prototypes.weight.device))
            highest, where = F.softmax(logits / temperature, dim=1).max(dim=1)
            cluster[rows], confidence[rows] = where.cpu().numpy(), highest.cpu().numpy()
    return cluster, confidence
