"""DCCL's concepts: which communities count, where they are, how they move, and the batches that show them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from gcdbench.core.arrays import IntArray


def drop_small(groups: IntArray, min_size: int) -> tuple[IntArray, int]:
    """Renumber groups of at least ``min_size`` members from 0; members of smaller ones get −1. Also their number."""
    kept = np.flatnonzero(np.bincount(groups) >= min_size)
    number = np.full(int(groups.max()) + 1, -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    return number[groups], len(kept)


def concept_means(features: Tensor, concepts: Tensor, count: int) -> Tensor:
    """(M, C) directions of the concepts: means of their members' features as they are, then brought to length 1.

    features: (N, C), not normalised: a member with a longer feature counts for more, as published.
    """
    member = concepts >= 0
    total = features.new_zeros(count, features.shape[1])
    total.index_add_(0, concepts[member], features[member])
    return F.normalize(total, dim=1)


def update_memory(memory: Tensor, rows: Tensor, concepts: Tensor, momentum: float) -> Tensor:
    """Row after row: direction of its concept ← m · direction + (1 − m) · row, back to length 1.

    rows: (R, C) of length 1; concepts: (R,), −1 for none. Rows of different concepts do not touch each other,
    so all first rows of each concept move together, then all second ones, and so on.
    """
    memory = memory.clone()
    chosen = torch.nonzero(concepts >= 0)[:, 0]
    by_concept = concepts[chosen].argsort(stable=True)
    chosen = chosen[by_concept]
    of = concepts[chosen]
    place = torch.arange(len(of), device=of.device) - torch.searchsorted(of, of)
    for turn in range(int(place.max()) + 1 if len(of) else 0):
        now = place == turn
        moved = momentum * memory[of[now]] + (1.0 - momentum) * rows[chosen[now]]
        memory[of[now]] = F.normalize(moved, dim=1)
    return memory


def concept_batch(concepts: IntArray, number: int, *, images: int, per_concept: int, seed: int) -> IntArray:
    """Positions of the ``number``-th batch (from 0) that shows ``per_concept`` images of one concept after the other.

    A batch holds as many concepts as fit into ``images``, at least one and at most all. Batches go through the concepts
    in a random order; where those left are too few for a batch, a new order begins. A function of its arguments alone:
    nothing has to be remembered between batches. concepts: (N,), −1 for none; at least one concept.
    """
    members = _members(concepts)
    together = min(max(images // per_concept, 1), len(members))
    turn, slot = divmod(number, len(members) // together)
    order = np.random.default_rng([seed, turn]).permutation(len(members))
    draw = np.random.default_rng([seed, turn, slot + 1])
    chosen = order[slot * together : (slot + 1) * together]
    return np.concatenate([_draw_members(members[concept], per_concept, draw) for concept in chosen])


def _members(concepts: IntArray) -> list[IntArray]:
    """Positions of each concept's members."""
    order = np.argsort(concepts, kind="stable")
    edges = np.searchsorted(concepts[order], np.arange(int(concepts.max()) + 2))
    return np.split(order, edges)[1:-1]


def _draw_members(members: IntArray, count: int, generator: np.random.Generator) -> IntArray:
    """(count,) members: one, and then others; the others repeat where there are fewer of them than ``count``."""
    first = generator.choice(members)
    others = members[members != first] if len(members) > 1 else members
    rest = generator.choice(others, count - 1, replace=len(others) < count)
    return np.concatenate([[first], rest]).astype(np.int64)
