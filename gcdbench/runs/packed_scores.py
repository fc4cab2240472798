"""Scores of a run as few bytes: a table of 100,000 runs has no time to read that many JSON texts of thirty numbers
each.

A line of JSON says for each evaluation set how many images it has, the old classes' share of them and the names of its
scores; runs of one suite share it, so it is read once for all of them. The numbers follow, eight bytes each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from struct import pack, unpack_from
from typing import NamedTuple

from gcdbench.runs.record import SetScores

NUMBER = 8


class PackedSet(NamedTuple):
    """Where the scores of one evaluation set begin, what they are called, and what they were counted on."""

    n: int
    old_share: float
    names: tuple[str, ...]
    start: int


def pack_scores(sets: Mapping[str, SetScores]) -> bytes:
    """The scores of all evaluation sets of a run."""
    head = {name: [found.n, found.old_share, list(found.scores)] for name, found in sets.items()}
    numbers = [value for found in sets.values() for value in found.scores.values()]
    return json.dumps(head).encode() + b"\n" + pack(f"<{len(numbers)}d", *numbers)


def unpack_set(packed: bytes, evaluation: str) -> tuple[PackedSet, dict[str, float]] | None:
    """One evaluation set and its scores by name; None where the run was not scored on it."""
    head, _, numbers = packed.partition(b"\n")
    found = _layout(head).get(evaluation)
    if found is None:
        return None
    values = unpack_from(f"<{len(found.names)}d", numbers, found.start)
    return found, dict(zip(found.names, values, strict=True))


@lru_cache(maxsize=4096)
def _layout(head: bytes) -> dict[str, PackedSet]:
    layout: dict[str, PackedSet] = {}
    start = 0
    for name, (n, old_share, names) in (json.loads(head) if head else {}).items():
        layout[name] = PackedSet(n=n, old_share=old_share, names=tuple(names), start=start)
        start += NUMBER * len(names)
    return layout
