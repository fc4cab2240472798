"""The figures of a run under the names that people expect in a dashboard.

The only place among the observers that knows what events and scores look like.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

HEADLINE = {"all": "All", "old": "Old", "new": "New"}
SETS = {"transductive": "eval", "inductive": "test"}


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Values by name, at a step: the number of epochs that are over."""

    step: int
    values: Mapping[str, float]


def figures_of_event(event: Any) -> Figures | None:
    """``train/loss``, ``train/loss/<name>``, ``train/lr``, ``train/images_per_s`` of an epoch; None for other events.

    ``train/loss`` is the sum of the terms.
    """
    said = _table(event)
    if said.get("type") != "epoch":
        return None
    losses = {str(name): float(value) for name, value in said["losses"].items()}
    values = {"train/loss": sum(losses.values()), **{f"train/loss/{name}": value for name, value in losses.items()}}
    for name in ("lr", "images_per_s"):
        values[f"train/{name}"] = float(said[name])
    return Figures(step=int(said["epoch"]) + 1, values=values)


def figures_of_scores(scores: Any) -> dict[str, float]:
    """``eval/All``, ``eval/Old``, ``eval/New`` and every other score of D_u; those of a test part below ``test/``."""
    return {
        f"{SETS.get(part, part)}/{HEADLINE.get(name, name)}": float(value)
        for part, scored in _table(scores)["sets"].items()
        for name, value in scored["scores"].items()
        if value is not None
    }


def _table(value: Any) -> Mapping[str, Any]:
    """Plain values, from a mapping or from something that can be written as one."""
    table: Mapping[str, Any] = value.to_table() if hasattr(value, "to_table") else value
    return table
