"""What the training images looked like: which known class a new image resembles, and whether it resembles any of them.

Likeness is the cosine between an image's feature and the mean feature of a known class's labelled images.

An image is *unlike everything seen* where its Mahalanobis distance from the training images is large: mean and
covariance (Ledoit and Wolf, A well-conditioned estimator for large-dimensional covariance matrices, 2004) are those of
the channel means that the frozen prefix gives, scaled to length 1. The prefix and not the trained tail: training
teaches the tail to ignore whatever does not tell its classes apart, and with it much of what gives a strange image
away. Half of the training images (every second one) give mean and covariance; the distances of the other half give the
threshold, their 99th percentile, so that about one in a hundred images of the same kind is flagged. Where the whole
network is the pretrained one (k-means), its feature takes the place of the prefix's channel means.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from gcdbench.core.arrays import IntArray
from gcdbench.models.model_card import Unlikeness

Floats = NDArray[np.float32]
Seen = Literal["prefix", "feature"]

QUANTILE = 0.99
LEAST_IMAGES = 40
"""Fewer training images say too little about what is usual: then nothing is flagged."""


def kind_of(seen: Seen) -> str:
    """The name that a card gives to the score."""
    return f"mahalanobis/{seen}/1"


class Reference(nn.Module):
    """Compares images with the training images.

    class_means: (K_old, C) directions of the known classes. centre: (D,) and whiten: (D, D) of what ``kind`` names;
    empty where nothing can be flagged. threshold: distances are given in units of it.
    """

    class_means: Tensor
    centre: Tensor
    whiten: Tensor

    def __init__(self, class_means: Tensor, centre: Tensor, whiten: Tensor, unlikeness: Unlikeness | None) -> None:
        super().__init__()
        self.register_buffer("class_means", class_means)
        self.register_buffer("centre", centre)
        self.register_buffer("whiten", whiten)
        self.threshold = unlikeness.threshold if unlikeness else math.nan
        self.sees_prefix = unlikeness is None or unlikeness.kind == kind_of("prefix")

    def forward(self, feature: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Feature (B, C) and prefix output (B, c, h, w) -> likeness (B, K_old) and unlike scores (B,)."""
        likeness = F.linear(F.normalize(feature, dim=1), self.class_means)
        if not len(self.centre):
            return likeness, torch.full_like(feature[:, 0], math.nan)
        rows = hidden.mean(dim=(2, 3)) if self.sees_prefix else feature
        return likeness, self.distance(rows) / self.threshold

    def distance(self, rows: Tensor) -> Tensor:
        """(B, D) -> (B,) Mahalanobis distances from the training images."""
        out: Tensor = torch.linalg.vector_norm(F.linear(F.normalize(rows, dim=1) - self.centre, self.whiten), dim=1)
        return out


def look_at(
    feature: Floats, labels: IntArray, *, seen: Floats, kind: Seen, k_old: int
) -> tuple[Reference, Unlikeness | None]:
    """The reference of N training images, and what a card says of it.

    feature: (N, C); labels: (N,), −1 where unlabelled; seen: (N, D) what tells unlike images, of which ``kind`` is the
    name.
    """
    means = class_means(feature, labels, k_old)
    if len(seen) < LEAST_IMAGES:
        return Reference(means, torch.empty(0), torch.empty(0, 0), None), None
    rows = F.normalize(torch.from_numpy(seen).double(), dim=1).numpy()
    used, held_out = rows[::2], rows[1::2]
    centre, whiten = whitening(used)
    made = Reference(means, centre, whiten, None)
    distances = made.distance(torch.from_numpy(held_out).float()).numpy()
    unlikeness = Unlikeness(
        kind=kind_of(kind), threshold=upper_quantile(distances), quantile=QUANTILE, images=len(held_out)
    )
    return Reference(means, centre, whiten, unlikeness), unlikeness


def class_means(feature: Floats, labels: IntArray, k_old: int) -> Tensor:
    """(K_old, C) direction of the mean of each class's labelled images; zero for a class without one."""
    labelled = labels >= 0
    rows = F.normalize(torch.from_numpy(feature[labelled]), dim=1)
    total = torch.zeros(k_old, rows.shape[1])
    total.index_add_(0, torch.from_numpy(labels[labelled]), rows)
    return F.normalize(total, dim=1)


def whitening(rows: NDArray[np.float64]) -> tuple[Tensor, Tensor]:
    """Mean (D,) and a matrix (D, D) after which the rows' shrunk covariance is the identity."""
    from sklearn.covariance import ledoit_wolf

    centre = rows.mean(axis=0)
    covariance, _ = ledoit_wolf(rows - centre, assume_centered=True)
    # Channels that never vary have no shrunk variance either where all of them are like that.
    floor = max(float(np.trace(covariance)) / len(covariance), 1e-12) * 1e-6
    factor = np.linalg.cholesky(covariance + floor * np.eye(len(covariance)))
    whiten = np.linalg.inv(factor)
    return torch.from_numpy(centre).float(), torch.from_numpy(whiten).float()


def upper_quantile(distances: Floats) -> float:
    """The smallest distance with at least the share QUANTILE of a new one below it; the largest where there are few."""
    place = min(math.ceil((len(distances) + 1) * QUANTILE), len(distances)) - 1
    return max(float(np.sort(distances)[place]), 1e-6)
