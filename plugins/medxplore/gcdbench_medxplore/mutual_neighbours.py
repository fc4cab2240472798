"""Similarities of chosen patches and their mutual nearest neighbours (Eq. mutual_nn)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def candidate_similarity(tokens: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """S (B, K, K): cosines between chosen tokens of view 1 (rows) and of view 2 (columns).

    tokens (2B, N, D), view 1 first; first, second (B, K) positions. On the small maps of a last stage all N × N
    products cost less than gathering the chosen tokens, and give the same cosines.
    """
    size, count = len(first), tokens.shape[1]
    if count <= 4 * first.shape[1]:
        norms = tokens.square().sum(dim=2).clamp_min(1e-16).sqrt()  # clamped: sqrt has no slope at 0
        products = torch.bmm(tokens[:size], tokens[size:].transpose(1, 2))
        cosines: Tensor = products / (norms[:size, :, None] * norms[size:, None, :])
        rows = cosines.gather(1, first[:, :, None].expand(-1, -1, count))
        return rows.gather(2, second[:, None, :].expand(-1, first.shape[1], -1))
    left = F.normalize(_gather_tokens(tokens[:size], first), dim=2, eps=1e-8)
    right = F.normalize(_gather_tokens(tokens[size:], second), dim=2, eps=1e-8)
    return torch.bmm(left, right.transpose(1, 2))


def mutual_matches(similarity: Tensor, delta: float) -> Tensor:
    """P as a mask (B, K, K): true where i and j are each other's nearest and S ≥ δ; the first of equals is nearest."""
    similarity = similarity.detach()
    nearest_column = F.one_hot(similarity.argmax(dim=2), similarity.shape[2]).bool()
    nearest_row = F.one_hot(similarity.argmax(dim=1), similarity.shape[1]).bool().transpose(1, 2)
    return nearest_column & nearest_row & (similarity >= delta)


def _gather_tokens(tokens: Tensor, positions: Tensor) -> Tensor:
    """(B, N, D), (B, K) -> (B, K, D)."""
    return tokens.gather(1, positions[:, :, None].expand(-1, -1, tokens.shape[2]))
