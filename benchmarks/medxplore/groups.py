"""Stored runs by what makes them different, and tables of them.

A group is the set of runs of one method that differ in nothing but the seed: they share split 0, so they repeat the
training alone. Runs over splits are in :mod:`benchmarks.medxplore.split_tables`.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from gcdbench.api import (
    BY_MAP,
    DONE,
    FROM_DATA,
    CellRecord,
    Materials,
    Request,
    card_of,
    default_protocol,
    flatten,
    get_manager,
    make_plan,
)

PRESET = "laptop"
LEDGER_DATASET = "kvasir"
SEVERAL = 3
"""The fewest seeds with which a variant is worth a line of a table of results."""
METHODS = (
    "kmeans", "ss-kmeans", "rs-plus", "uno-plus", "orca", "gcd", "dccl", "cms", "simgcd", "legogcd", "nguf-approx",
    "medxplore",
)  # fmt: skip
SCORES = {
    "all": "All",
    "old": "Old",
    "new": "New",
    **{score.key: score.title.removesuffix(" confusion") for score in BY_MAP},
    "false_old": "**false-old**",
}


@dataclass(frozen=True, kw_only=True)
class Group:
    """Runs that differ in nothing but the seed. changes: settings that are not the method's and the preset's own."""

    method: str
    variant: str
    dataset: str
    changes: Mapping[str, object]
    runs: tuple[CellRecord, ...]

    @property
    def name(self) -> str:
        """The method, and what is different about it, in Markdown."""
        if self.variant:
            return f"`{self.method}`, variant `{self.variant}`"
        changed = " ".join(f"{key}={value}" for key, value in self.changes.items())
        return f"`{self.method}`" + (f", `{changed}`" if changed else "")

    def mean(self, score: str) -> float:
        """Over the seeds."""
        return statistics.mean(run.scores[score] for run in self.runs)


def group_runs(records: Iterable[CellRecord]) -> list[Group]:
    """Finished runs of the preset and of each dataset's own protocol; methods in the order of the paper's table."""
    found: dict[str, list[CellRecord]] = {}
    for record in sorted(records, key=lambda record: record.seed):
        usual = record.preset == PRESET and record.protocol == _own_protocol(record.dataset)
        if usual and record.status == DONE and record.identity["protocol"]["split_seed"] == 0:
            found.setdefault(record.settings, []).append(record)
    groups = [
        Group(
            method=runs[0].method,
            variant=runs[0].variant,
            dataset=runs[0].dataset,
            changes=changed_settings(runs[0]),
            runs=tuple(runs),
        )
        for runs in found.values()
    ]
    place = {method: number for number, method in enumerate(METHODS)}
    return sorted(groups, key=lambda group: (place.get(group.method, len(place)), group.method, group.name))


def changed_settings(record: CellRecord) -> dict[str, object]:
    """What ``--set`` or a variant changed, by the names that ``--set`` has for it."""
    usual = _usual_identity(record.method, record.dataset)
    own = flatten({key: value for key, value in record.identity.items() if key not in (*FROM_DATA, "seed")})
    differing = {key: value for key, value in own.items() if value != usual.get(key)}
    return {re.sub(r"^(config|training)\.", "", key): value for key, value in differing.items()}


@cache
def _own_protocol(dataset: str) -> str:
    return default_protocol(card_of(dataset, get_manager()))


@cache
def _usual_identity(method: str, dataset: str) -> dict[str, object]:
    plan = make_plan(Request(method=method, dataset=dataset, preset=PRESET, seed=0), get_manager())
    return flatten(plan.identity(Materials(dataset=dataset)))


def summarise(values: Sequence[float], *, places: int = 1) -> str:
    """Mean, and the standard deviation where there is one."""
    mean = f"{statistics.mean(values):.{places}f}"
    return f"{mean} ± {statistics.stdev(values):.{places}f}" if len(values) > 1 else mean


def headline_groups(groups: Sequence[Group], dataset: str) -> list[Group]:
    """Each method with the fewest changed settings that it was run with, and each variant with several seeds.

    Runs of an earlier version of a method stay stored, but they are not results of the method as it is now.
    """
    here = [group for group in groups if group.dataset == dataset and "method_version" not in group.changes]
    plain: dict[str, Group] = {}
    for group in sorted(here, key=lambda group: len(group.changes)):
        if not group.variant:
            plain.setdefault(group.method, group)
    return [g for g in here if plain.get(g.method) is g or (g.variant and len(g.runs) >= SEVERAL)]


def result_table(groups: Sequence[Group], dataset: str, *, only: Sequence[str] = ()) -> str:
    """One line for each of the :func:`headline_groups`, or for those that ``only`` names, as ``method:variant``."""
    lines = [" | ".join(["| method | n | range of All", *SCORES.values()]) + " |", "|---" * (3 + len(SCORES)) + "|"]
    for group in headline_groups(groups, dataset):
        if only and ":".join(filter(None, (group.method, group.variant))) not in only:
            continue
        values = [run.scores["all"] for run in group.runs]
        span = f"{min(values):.1f} to {max(values):.1f}" if len(values) > 1 else "–"
        cells = (summarise([run.scores[score] for run in group.runs]) for score in SCORES)
        lines.append(" | ".join([f"| {group.name}", str(len(group.runs)), span, *cells]) + " |")
    return "\n".join(lines)


def measured_effects(settings: str, groups: Sequence[Group]) -> str:
    """``name All / Old / New, false-old (n)`` of every group that a row's variants or settings made."""
    named = set(re.findall(r"`([^`]+)`", settings))
    parts = []
    for group in groups:
        about = group.variant in named if group.variant else bool(group.changes) and set(group.changes) <= named
        if group.dataset == LEDGER_DATASET and about:
            scores = " / ".join(f"{group.mean(score):.1f}" for score in ("all", "old", "new"))
            parts.append(f"{group.name}: {scores}, {group.mean('false_old'):.1f} ({len(group.runs)})")
    return "; ".join(parts) or "not measured yet"
