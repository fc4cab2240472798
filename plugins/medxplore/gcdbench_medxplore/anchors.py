"""Semantic anchors: the Top-K patches of both views, and which of them belong together."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gcdbench_medxplore.matching import candidate_similarity, mutual_matches
from gcdbench_medxplore.patches import patch_scores, patch_tokens, top_k


@dataclass(frozen=True, kw_only=True)
class Anchors:
    """For B images: attention of the chosen patches of each view (B, K), cosines and matches (B, K, K)."""

    first: Tensor
    second: Tensor
    similarity: Tensor
    matches: Tensor


def find_anchors(x: Tensor, attention: Tensor, *, k: int, delta: float, grid: int | None = None) -> Anchors:
    """X (2B, C, H, W) and A (2B, H, W), view 1 first -> the anchors of B images."""
    scores = patch_scores(attention, grid)
    chosen = top_k(scores, k)
    first, second = chosen.chunk(2)
    similarity = candidate_similarity(patch_tokens(x, grid), first, second)
    score_first, score_second = scores.gather(1, chosen).chunk(2)
    return Anchors(
        first=score_first, second=score_second, similarity=similarity, matches=mutual_matches(similarity, delta)
    )
