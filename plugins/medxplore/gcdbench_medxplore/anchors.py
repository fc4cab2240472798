"""Semantic anchors: the Top-K patches of both views, and which of them belong together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from gcdbench_medxplore.config import View
from gcdbench_medxplore.mutual_neighbours import candidate_similarity, mutual_matches
from gcdbench_medxplore.patches import hold_view, patch_scores, patch_tokens, top_k


@dataclass(frozen=True, kw_only=True)
class Anchors:
    """For B images: attention of the chosen patches of each view (B, K), cosines and matches (B, K, K)."""

    first: Tensor
    second: Tensor
    similarity: Tensor
    matches: Tensor


def find_anchors(
    x: Tensor,
    attention: Tensor,
    *,
    k: int,
    delta: float,
    grid: int | None = None,
    project: Callable[[Tensor], Tensor] | None = None,
    held: View | None = None,
) -> Anchors:
    """X (2B, C, H, W) and A (2B, H, W), view 1 first -> the anchors of B images.

    project: what is done to the tokens before they are compared; held: the view whose tokens are constants.
    """
    scores = patch_scores(attention, grid)
    chosen = top_k(scores, k)
    first, second = chosen.chunk(2)
    tokens = patch_tokens(x, grid)
    if project is not None:
        tokens = project(tokens)
    if held is not None:
        tokens = hold_view(tokens, held)
    similarity = candidate_similarity(tokens, first, second)
    score_first, score_second = scores.gather(1, chosen).chunk(2)
    return Anchors(
        first=score_first, second=score_second, similarity=similarity, matches=mutual_matches(similarity, delta)
    )
