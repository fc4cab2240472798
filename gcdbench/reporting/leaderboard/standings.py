"""The standings: one board per dataset and protocol, one row per experiment."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gcdbench.metrics.error_terms import TERMS
from gcdbench.metrics.score import ScoreCatalogue
from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.leaderboard.collect import Submitted
from gcdbench.reporting.records import CellRecord
from gcdbench.reporting.run_marks import told_apart
from gcdbench.reporting.statistics import t_interval
from gcdbench.reporting.telling_settings import telling_settings
from gcdbench.runs.record import TRANSDUCTIVE
from gcdbench.runs.run_entry import make_entry

HEADLINE = "all"
SHOWN = (HEADLINE, "old", "new", *TERMS)
"""Scores that have a column of their own, in this order."""
ENOUGH = 5
"""Runs from which on a row's median is worth naming before those of fewer runs."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One experiment: runs that differ in the seed only, or in the seed and the split only.

    medians: by the key of a score. low, high: Student's 95 % interval of the mean of All, within the score's bounds;
    None with fewer than two runs. seconds: the median of those runs whose time is known. settings: what tells it from
    other rows of its name.
    """

    runs: tuple[Submitted, ...]
    medians: dict[str, float]
    mean: float
    low: float | None
    high: float | None
    seconds: float | None
    images_seen: float | None
    settings: str

    @property
    def n(self) -> int:
        """How many runs there are."""
        return len(self.runs)

    @property
    def splits(self) -> int:
        """On how many splits."""
        return len({run.record.split_sha256 for run in self.runs})


@dataclass(frozen=True, kw_only=True)
class Board:
    """The experiments on one dataset under one protocol, best median of All first."""

    anchor: str
    dataset: str
    protocol: str
    k_policy: str
    classes: int
    old_classes: int
    rows: tuple[Row, ...]

    @property
    def has_settings(self) -> bool:
        """Whether any row needs its settings to be distinguished from another."""
        return any(row.settings for row in self.rows)


def make_boards(runs: Sequence[Submitted], catalogue: ScoreCatalogue, manager: PluginManager) -> list[Board]:
    """Boards by name; only what shares images, protocol and the numbers of classes stands on one."""
    names = told_apart([run.record for run in runs])
    groups: dict[tuple[str, str, str, str, int, int], list[Submitted]] = {}
    for run in runs:
        record = run.record
        dataset = names.get((record.dataset, record.images), record.dataset)
        old = len(record.split.old_classes)
        key = (dataset, record.protocol, record.k_policy, record.rules, len(record.split.classes), old)
        groups.setdefault(key, []).append(run)
    boards: list[Board] = []
    for number, (key, members) in enumerate(sorted(groups.items(), key=lambda item: item[0]), start=1):
        dataset, protocol, k_policy, _, classes, old = key
        on_split = Counter((run.record.experiment, run.record.split_sha256) for run in members)
        rows: dict[tuple[str, str], list[Submitted]] = {}
        for run in members:
            # Seeds that share a split say nothing of splits, so they are not averaged with seeds that have their own.
            place = (run.record.experiment, run.record.split_sha256)
            rows.setdefault(place if on_split[place] > 1 else (place[0], ""), []).append(run)
        told = telling_settings({"/".join(place): _entries(found) for place, found in rows.items()}, manager)
        made = [_row(found, catalogue, told["/".join(place)]) for place, found in rows.items()]
        made.sort(key=lambda row: (-row.medians[HEADLINE], row.runs[0].record.name, row.runs[0].record.run_id))
        boards.append(
            Board(
                anchor=f"board-{number}",
                dataset=dataset,
                protocol=protocol,
                k_policy=k_policy,
                classes=classes,
                old_classes=old,
                rows=tuple(made),
            )
        )
    return boards


def _entries(runs: Sequence[Submitted]) -> list[CellRecord]:
    """Runs as lists have them, with the scores that were computed here: an archive has no directory to read."""
    return [make_entry(run.record, sets={TRANSDUCTIVE: run.scores}) for run in runs]


def _row(runs: Sequence[Submitted], catalogue: ScoreCatalogue, settings: str) -> Row:
    ordered = sorted(runs, key=lambda run: (run.record.seed, run.record.run_id))
    values = [run.scores.scores[HEADLINE] for run in ordered]
    interval, score = t_interval(values), catalogue[HEADLINE]
    shared = [key for key in SHOWN if all(key in run.scores.scores for run in ordered)]
    return Row(
        runs=tuple(ordered),
        medians={key: statistics.median(run.scores.scores[key] for run in ordered) for key in shared},
        mean=statistics.fmean(values),
        low=None if interval is None else score.clipped(interval.low),
        high=None if interval is None else score.clipped(interval.high),
        seconds=_median_cost(ordered, "seconds"),
        images_seen=_median_cost(ordered, "images_seen"),
        settings=settings,
    )


def _median_cost(runs: Sequence[Submitted], name: str) -> float | None:
    known = [run.record.spent[name] for run in runs if name in run.record.spent]
    return statistics.median(known) if known else None
