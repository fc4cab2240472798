"""The weighted patch-consistency loss (Eq. pc_loss)."""

from __future__ import annotations

from torch import Tensor


def pair_weights(first: Tensor, second: Tensor) -> Tensor:
    """w (B, K, K): mean attention of the two patches of each pair, from the chosen scores (B, K) of each view."""
    return (first[:, :, None] + second[:, None, :]) / 2


def patch_consistency(
    similarity: Tensor, matches: Tensor, weights: Tensor, *, min_matches: int = 1, eps: float = 1e-6
) -> Tensor:
    """L_pc: the weighted mean of 1 − S over each image's matches, averaged over images with enough of them.

    similarity, weights (B, K, K), matches (B, K, K) bool. Without one valid image the loss is exactly 0 and still
    hangs on the graph, so that a step without matches needs no special case.
    """
    chosen = weights * matches
    share = (chosen * (1 - similarity)).sum(dim=(1, 2)) / (chosen.sum(dim=(1, 2)) + eps)
    valid = matches.sum(dim=(1, 2)) >= max(min_matches, 1)
    return (share * valid).sum() / valid.sum().clamp_min(1)
