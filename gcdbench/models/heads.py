"""Heads: a projector for contrastive losses, and what turns a feature into clusters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from gcdbench.core.arrays import IntArray
from gcdbench.models.products import linear

Row = TypeVar("Row", bound="Prototypes")


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
        return linear(x, self.weight, self.bias)


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
        return linear(F.normalize(feature, dim=1), F.normalize(self.weight, dim=1))


class Centres(Prototypes):
    """K cluster centres; the output is x·c − |c|²/2 for features x of length 1, largest at the nearest centre.

    For methods that cluster trained features: centres of k-means are not directions: their lengths count.
    """

    def forward(self, feature: Tensor) -> Tensor:
        """(R, C) -> (R, K), half of 1 − |x − c|²."""
        return linear(F.normalize(feature, dim=1), self.weight) - self.weight.square().sum(dim=1) / 2


class Distances(Prototypes):
    """K cluster centres of features as they are; the output is x·c − |c|²/2, largest at the nearest centre."""

    def forward(self, feature: Tensor) -> Tensor:
        """(R, C) -> (R, K), half of |x|² − |x − c|²."""
        return linear(feature, self.weight) - self.weight.square().sum(dim=1) / 2


class ProjectedCentres(nn.Module):
    """K cluster centres in a projector's space, its output scaled to length 1; the output is that of ``Centres``.

    For methods that cluster what their projector makes of the feature.
    """

    def __init__(self, projector: Projector, centres: Centres) -> None:
        super().__init__()
        self.projector = projector
        self.centres = centres

    @property
    def k(self) -> int:
        """Number of centres."""
        return self.centres.k

    def forward(self, feature: Tensor) -> Tensor:
        """(R, C) -> (R, K)."""
        out: Tensor = self.centres(self.projector(feature))
        return out


Head = Prototypes | ProjectedCentres
"""What turns a feature into one number per cluster."""

HEADS: dict[str, type[Prototypes]] = {"cosine/1": Prototypes, "centre/1": Centres, "distance/1": Distances}
"""Heads that are K rows of the feature's width, by the name a saved model gives them."""

PROJECTED = "projected-centre/1"
"""The name of the head that has a projector before its centres."""

KNOWN_HEADS = (*HEADS, PROJECTED)
"""All names a saved model may give its head."""


def build_head(name: str, state: Mapping[str, Tensor]) -> Head:
    """The head ``name`` with the tensors of ``state``, from which its sizes follow.

    Tensors that do not fit are a KeyError, ValueError or RuntimeError.
    """
    head: Head
    if name == PROJECTED:
        sizes = [state[f"projector.layers.{number}.weight"].shape for number in range(3)]
        projector = Projector(sizes[0][1], torch.Generator(), hidden=sizes[0][0], out=sizes[2][0])
        head = ProjectedCentres(projector, _rows_like(Centres, state["centres.weight"]))
    else:
        head = _rows_like(HEADS[name], state["weight"])
    head.load_state_dict(state)
    return head


def make_head(kind: type[Row], rows: NDArray[np.float32], device: torch.device | str = "cpu") -> Row:
    """A head of that kind with given rows (K, C)."""
    head = kind(rows.shape[1], len(rows))
    head.weight = nn.Parameter(torch.from_numpy(rows.copy()))
    return head.to(device)


def _rows_like(kind: type[Row], weight: Tensor) -> Row:
    k, channels = weight.shape
    return kind(channels, k)


ROWS_AT_ONCE = 16_384
"""Features that a head reads at once: a normalised copy of all would be as large as they are."""


def nearest_prototype(
    pooled: NDArray[np.float32], head: nn.Module, temperature: float
) -> tuple[IntArray, NDArray[np.float32]]:
    """Cluster and confidence (softmax of the head's output / temperature) of each row; ties go to the first cluster."""
    cluster, confidence = np.empty(len(pooled), dtype=np.int64), np.empty(len(pooled), dtype=np.float32)
    device = next(head.parameters()).device
    with torch.no_grad():
        for start in range(0, len(pooled), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            logits = head(torch.from_numpy(pooled[rows]).to(device))
            highest, where = F.softmax(logits / temperature, dim=1).max(dim=1)
            cluster[rows], confidence[rows] = where.cpu().numpy(), highest.cpu().numpy()
    return cluster, confidence
