"""Balanced soft assignments by the Sinkhorn–Knopp iteration, as UNO and SwAV use it."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def sinkhorn(logits: Tensor, *, epsilon: float, iterations: int) -> Tensor:
    """(R, K) -> (R, K) without gradient: rows sum to 1, columns approach R / K.

    Each iteration balances the columns, then the rows. In logarithms, so that a small ``epsilon`` cannot overflow.
    Fewer rows than columns, one row and no row at all are allowed.
    """
    rows, columns = logits.shape
    with torch.no_grad():
        log_q = logits / epsilon
        for _ in range(iterations):
            log_q = log_q - torch.logsumexp(log_q, dim=0, keepdim=True) - math.log(columns)
            log_q = log_q - torch.logsumexp(log_q, dim=1, keepdim=True)
        return log_q.softmax(dim=1) if rows else torch.zeros_like(logits)
