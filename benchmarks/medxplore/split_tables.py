"""Tables over splits: median, failure rate and both false-olds of rows in which every run has a split of its own.

A row without a finished run says so; how many splits it has is in its line.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.medxplore.groups import PRESET
from benchmarks.medxplore.outcomes import Spread, failure_text, worst_exchange
from benchmarks.medxplore.seed_tables import STUDY
from gcdbench.api import DONE, CellRecord, get_manager, load_suite, note_on_weights, runs_of_suite

NOT_MEASURED = "not measured"
SCORES = {
    "all": "All",
    "old": "Old",
    "new": "New",
    "false_old": "false-old by the map",
    "head_false_old": "by the head",
}
SMALL = ("false_old", "head_false_old")
"""Scores that are shown with two decimals."""
CELLS: tuple[tuple[str, str, str, str], ...] = (
    ("as in the main table: 50 % labels, 20 epochs, 128 px, Lite0, ε = 2", "regime", "simgcd", "medxplore"),
    ("20 % labels, ε = 1", "regime-labels", "simgcd-1", "medxplore-1"),
    ("20 % labels, ε = 2", "regime-labels", "simgcd-2", "medxplore-2"),
    ("60 epochs", "regime", "simgcd-60-epochs", "medxplore-60-epochs"),
    ("224 px: 7×7 map, K = 8 of 49", "regime", "simgcd-224px", "medxplore-224px"),
    ("ResNet-50, last stage trained", "regime", "simgcd-resnet50", "medxplore-resnet50"),
    ("old classes drawn by the split seed", "regime-old-classes", "simgcd", "medxplore"),
)
"""The paper's regime: what is different, the suite, and the rows of SimGCD and MedXplore."""
NETWORKS: tuple[tuple[str, str, str, str], ...] = (
    ("EfficientNet-Lite0, 128 px", "networks", "simgcd", "medxplore"),
    ("EfficientNet-Lite2, 128 px", "networks", "simgcd-lite2", "medxplore-lite2"),
    ("ResNet-50, 128 px", "networks", "simgcd-resnet50", "medxplore-resnet50"),
    ("DeiT-Tiny, 224 px", "networks", "simgcd-deit", "medxplore-deit"),
)


@dataclass(frozen=True, kw_only=True)
class SplitRows:
    """The finished runs of a suite's rows on one dataset, by the rows' keys; planned: how many splits a row has."""

    titles: Mapping[str, str]
    runs: Mapping[str, Sequence[CellRecord]]
    planned: int


def read_splits(suite_name: str, dataset: str, records: Sequence[CellRecord]) -> SplitRows:
    """A suite's rows under the study's preset; the suite must repeat splits."""
    suite = load_suite(f"{STUDY}/{suite_name}", get_manager())
    if suite.replicate != "split":
        raise ValueError(f"the suite '{suite_name}' repeats the training alone")
    preset = suite.preset(PRESET)
    found, _ = runs_of_suite(suite, preset, records, get_manager(), seeds=preset.seeds)
    return SplitRows(
        titles={row.key: row.title for row in suite.rows},
        runs={row.key: [run for run in found[row.key, dataset] if run.status == DONE] for row in suite.rows},
        planned=len(preset.seeds),
    )


def split_table(rows: SplitRows) -> str:
    """One line per row of the suite that has runs, and one sentence with the others."""
    lines = [f"| method | n | fails | {' | '.join(SCORES.values())} |", "|---" * (3 + len(SCORES)) + "|"]
    for key, title in rows.titles.items():
        if rows.runs[key]:
            lines.append(f"| {title} | {' | '.join(summary(rows.runs[key]))} |")
    empty = [title for key, title in rows.titles.items() if not rows.runs[key]]
    parts = ["\n".join(lines)] if len(empty) < len(rows.titles) else []
    parts += [f"Not measured yet: {', '.join(empty)}."] if empty else []
    return "\n\n".join(parts)


def summary(runs: Sequence[CellRecord]) -> list[str]:
    """n, failures, and the median of every score with its interval or range."""
    if not runs:
        return [NOT_MEASURED, *["–"] * (1 + len(SCORES))]
    spreads = [_spread(score, runs) for score in SCORES]
    return [str(len(runs)), failure_text([worst_exchange(run) for run in runs]), *spreads]


def _spread(score: str, runs: Sequence[CellRecord]) -> str:
    """k-means ties no cluster to a class, so it has no errors by the head."""
    values = tuple(run.scores[score] for run in runs if score in run.scores)
    return Spread(values=values).text(_places(score)) if len(values) == len(runs) else "–"


def _places(score: str) -> int:
    return 2 if score in SMALL else 1


def cell_table(cells: Sequence[tuple[str, str, str, str]], records: Sequence[CellRecord], head: str) -> str:
    """One line per cell and method: the cell, the method, and what :func:`summary` has.

    Below it stands what readers must know of the weights that measured cells were made with.
    """
    suites = {suite: read_splits(suite, "kvasir", records) for suite in dict.fromkeys(cell[1] for cell in cells)}
    lines = [f"| {head} | method | n | fails | {' | '.join(SCORES.values())} |", "|---" * (4 + len(SCORES)) + "|"]
    for title, suite, *pair in cells:
        for method, row in zip(("SimGCD", "MedXplore"), pair, strict=True):
            lines.append(f"| {title} | {method} | {' | '.join(summary(suites[suite].runs[row]))} |")
    cells_of: dict[str, list[str]] = {}
    for title, suite, *pair in cells:
        for digest in {str(run.identity.get("weights_sha256", "")) for row in pair for run in suites[suite].runs[row]}:
            cells_of.setdefault(digest, []).append(title)
    notes = [f"{', '.join(titles)}: {note}" for digest, titles in cells_of.items() if (note := note_on_weights(digest))]
    return "\n\n".join(["\n".join(lines), *notes])


@dataclass(frozen=True, kw_only=True)
class Above:
    """Cells in which both methods have all planned splits, and those of them in which MedXplore's median is higher."""

    complete: int
    above: int


def count_above(cells: Sequence[tuple[str, str, str, str]], records: Sequence[CellRecord], score: str) -> Above:
    """MedXplore's median of a score against SimGCD's, cell by cell."""
    differences = []
    for _, suite, simgcd, medxplore in cells:
        rows = read_splits(suite, "kvasir", records)
        if len(rows.runs[simgcd]) == len(rows.runs[medxplore]) == rows.planned:
            medians = [statistics.median(run.scores[score] for run in rows.runs[key]) for key in (medxplore, simgcd)]
            differences.append(medians[0] - medians[1])
    return Above(complete=len(differences), above=sum(difference > 0 for difference in differences))


def screening_scores(records: Sequence[CellRecord]) -> dict[str, dict[str, float]]:
    """The number that chooses the recommended setting, by candidate and dataset, where all planned runs are there.

    The mean of Old by the head without a map and of New, over splits; ``both`` is the mean over the datasets.
    """
    planned = {"phantom": 3, "pbc": 1}
    found: dict[str, dict[str, float]] = {}
    for dataset, splits in planned.items():
        for key, runs in read_splits("screening", dataset, records).runs.items():
            if len(runs) >= splits:
                values = [(run.scores["plain_old"] + run.scores["new"]) / 2 for run in runs]
                found.setdefault(key, {})[dataset] = statistics.mean(values)
    return {
        key: {**values, "both": statistics.mean(values.values())} if len(values) == len(planned) else values
        for key, values in found.items()
    }


def screening_table(records: Sequence[CellRecord]) -> str:
    """One line per candidate, in the order in which they were named."""
    titles = read_splits("screening", "phantom", records).titles
    scores = screening_scores(records)
    lines = ["| candidate | phantom | PBC | both |", "|---|---|---|---|"]
    for key, title in titles.items():
        cells = (scores.get(key, {}).get(column) for column in ("phantom", "pbc", "both"))
        lines.append(f"| {title} | {' | '.join(NOT_MEASURED if c is None else f'{c:.1f}' for c in cells)} |")
    return "\n".join(lines)
