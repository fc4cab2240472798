"""What one run repeats of another: its training on one split, or the split as well. No row of a table mixes the two.

A run repeats the split where its split seed is its seed; a suite makes such runs unless it says otherwise. Runs of
several seeds on one split repeat the training alone: their spread says nothing about splits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gcdbench.core.identity import digest
from gcdbench.reporting.records import CellRecord

SPLIT_PER_SEED = "one per seed"
"""The split of a row in which each seed has its own."""


def split_seed(record: CellRecord) -> int:
    """The seed that drew the run's split."""
    return int(record.common.identity["protocol"].get("split_seed", 0))


def without_split(identity: Mapping[str, Any]) -> dict[str, Any]:
    """An identity without its seed and without what says which split of its protocol a run had."""
    protocol = {key: value for key, value in identity["protocol"].items() if key != "split_seed"}
    kept = {key: value for key, value in identity.items() if key not in ("seed", "manifest_sha256")}
    return {**kept, "protocol": protocol}


def repeats_split(records: Iterable[CellRecord]) -> bool:
    """Whether these runs of one row have several splits."""
    return len({record.split_sha256 for record in records}) > 1


def group_replicates(records: Iterable[CellRecord]) -> dict[str, list[CellRecord]]:
    """Runs that may be averaged, under one key each.

    Runs that share settings and split are one group. Where such a group is a single seed that drew its own split, it
    joins the others like it: they are one group of runs with a split each. The first split of twenty seeds therefore
    stays with its twenty seeds.
    """
    on_one_split: dict[str, list[CellRecord]] = {}
    for record in records:
        on_one_split.setdefault(record.settings, []).append(record)
    alike: dict[str, list[str]] = {}
    for settings, members in on_one_split.items():
        if all(member.seed == split_seed(member) for member in members):
            alike.setdefault(digest(without_split(members[0].common.identity)), []).append(settings)
    joined: dict[str, str] = {}
    for key, found in alike.items():
        seeds = [on_one_split[settings][0].seed for settings in found]
        # A split file of somebody's own may carry the same protocol and seed and hold another split.
        single = [settings for settings, seed in zip(found, seeds, strict=True) if seeds.count(seed) == 1]
        if len(single) > 1:
            joined.update(dict.fromkeys(single, key))
    groups: dict[str, list[CellRecord]] = {}
    for settings, members in on_one_split.items():
        groups.setdefault(joined.get(settings, settings), []).extend(members)
    return groups
