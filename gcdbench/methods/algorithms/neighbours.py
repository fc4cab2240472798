"""Nearest neighbours by cosine, in blocks of rows: no full similarity matrix of a training set is kept."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from gcdbench.images.image_set import ImageSet

_BLOCK = 2048


def rows_of(ids: Tensor, images: ImageSet) -> Tensor:
    """(B,) position of each id in ``images``, whose ids ascend."""
    return torch.searchsorted(torch.from_numpy(images.ids).to(ids.device), ids)


def nearest_neighbours(queries: Tensor, memory: Tensor, k: int, *, exclude_self: bool = False) -> tuple[Tensor, Tensor]:
    """Cosines and rows of the ``k`` nearest in ``memory`` (M, D) of each query (R, D), best first: (R, k), (R, k).

    With ``exclude_self`` query i is row i of the memory and does not find itself.
    Fewer than ``k`` candidates give fewer columns.
    """
    k = min(k, len(memory) - int(exclude_self))
    unit = F.normalize(memory, dim=1)
    cosines, rows = [], []
    for start in range(0, len(queries), _BLOCK):
        similarity = F.normalize(queries[start : start + _BLOCK], dim=1) @ unit.T
        if exclude_self:
            own = torch.arange(len(similarity), device=similarity.device)
            similarity[own, own + start] = -torch.inf
        best = similarity.topk(k, dim=1)
        cosines.append(best.values)
        rows.append(best.indices)
    if not rows:
        return queries.new_zeros(0, k), torch.zeros(0, k, dtype=torch.int64, device=queries.device)
    return torch.cat(cosines), torch.cat(rows)
