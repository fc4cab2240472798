"""Which images an epoch shows, in which order: a pure function of the labels, the seed and the epoch."""

from __future__ import annotations

import numpy as np

from gcdbench.core.arrays import IntArray
from gcdbench.training.context import derive_seed


def epoch_rng(seed: int, epoch: int) -> np.random.Generator:
    """The generator that orders one epoch; epochs are independent, so a resumed run needs no history."""
    return np.random.default_rng([derive_seed(seed, "order"), epoch])


def balanced_order(labels: IntArray, rng: np.random.Generator) -> IntArray:
    """(N,) positions drawn with replacement, half of them labelled in expectation, as in SimGCD.

    Each labelled image has weight 1 and each unlabelled one N_labelled / N_unlabelled.
    With only one of the two kinds present, all images weigh the same.
    """
    given = labels >= 0
    labelled, unlabelled = int(given.sum()), int((~given).sum())
    weights = np.ones(len(labels))
    if labelled and unlabelled:
        weights[~given] = labelled / unlabelled
    edges = np.cumsum(weights)
    drawn = np.searchsorted(edges, rng.random(len(labels)) * edges[-1], side="right")
    # Rounding may place a draw on the last edge itself, which is past the end.
    order: IntArray = np.minimum(drawn, len(labels) - 1).astype(np.int64)
    return order


def batch_size_for(images: int, batch_size: int, world: int = 1) -> int:
    """The global batch: ``batch_size``, or what a smaller epoch can fill; a multiple of ``world``, never 0."""
    return max(min(batch_size, images) // world, 1) * world
