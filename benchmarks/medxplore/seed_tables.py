"""Rows of a suite seed by seed, and their paired differences over groups of seeds, from the stored runs.

What two classes exchange with each other is counted apart: where the prototypes of two new classes settle across both,
hundreds of images change sides at once, and every other difference between two methods disappears behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from gcdbench.api import (
    BY_MAP,
    DONE,
    TRANSDUCTIVE,
    CellRecord,
    PairedDifference,
    get_manager,
    load_suite,
    paired_difference,
    read_record,
    runs_of_suite,
)

STUDY = "medxplore"
BY_SEED = {"all": "All", "old": "Old", "new": "New", "false_old": "false-old", "exchanged": "exchanged"}
BY_SEED_OF_MANY = ("all", "false_old", "exchanged")
"""What is shown of each seed where more than two rows stand side by side."""
COMPARED = {
    **{score: score.capitalize() for score in ("all", "old", "new")},
    **{score.key: score.title for score in BY_MAP},
    "across": "false-new and false-old together",
    "rates": "mean of their rates",
    "apart": "all errors but the exchange",
}
BY_PAIR = ("all", "old", "new", "false_new", "false_old", "across", "rates")
"""What is shown of each pair where more than one pair is compared."""


@dataclass(frozen=True, kw_only=True)
class SeedRows:
    """Values of rows by seed, and the rows' titles, by the rows' keys."""

    titles: Mapping[str, str]
    values: Mapping[str, Mapping[int, Mapping[str, float]]]

    @property
    def shared(self) -> list[int]:
        """Seeds that all rows have."""
        return sorted(set.intersection(*(set(seeds) for seeds in self.values.values())))


def read_rows(
    suite_name: str,
    preset: str,
    dataset: str,
    classes: tuple[str, str] | None,
    records: Sequence[CellRecord],
    *,
    seeds: tuple[int, ...] | None = None,
) -> SeedRows:
    """A suite's rows on one dataset, with what two classes exchange, where given; without seeds, the preset's."""
    suite = load_suite(f"{STUDY}/{suite_name}", get_manager())
    chosen = suite.preset(preset)
    runs, _ = runs_of_suite(suite, chosen, records, get_manager(), seeds=seeds or chosen.seeds)
    return SeedRows(
        titles={row.key: row.title for row in suite.rows},
        values={
            row.key: {run.seed: run_values(run, classes) for run in runs[row.key, dataset] if run.status == DONE}
            for row in suite.rows
        },
    )


def run_values(run: CellRecord, classes: tuple[str, str] | None = None) -> dict[str, float]:
    """Scores of a run and, of two classes, images they ``exchanged`` and in percent all other errors (``apart``).

    ``across`` is the share of images on the wrong side of the border between old and new, whichever side that is;
    ``old_as_new`` and ``new_as_old`` are such shares of the old images and of the new ones, ``rates`` is their mean.
    Sums of percentages are rounded: seeds with as many errors must be equal.
    """
    old_as_new, new_as_old = border_rates(run)
    found = {
        **run.scores,
        "across": round(run.scores["false_new"] + run.scores["false_old"], 9),
        "old_as_new": old_as_new,
        "new_as_old": new_as_old,
        "rates": round((old_as_new + new_as_old) / 2, 9),
    }
    if classes is not None:
        exchanged = taken_for(run, *classes) + taken_for(run, *reversed(classes))
        found["exchanged"] = exchanged
        found["apart"] = round(100 - run.scores["all"] - 100 * exchanged / run.samples, 9)
    return found


def taken_for(run: CellRecord, truth: str, assigned: str) -> int:
    """Unlabelled images of one class that were taken for another."""
    record = read_record(run.path)
    if record.scores is None:
        raise ValueError(f"The run '{run.run_id}' is not finished.")
    classes = record.split.classes  # in the order of the confusion matrix
    return record.scores.sets[TRANSDUCTIVE].confusion[classes.index(truth)][classes.index(assigned)]


def border_rates(run: CellRecord) -> tuple[float, float]:
    """Percent of the old images that are taken for new, and of the new ones that are taken for old."""
    if not run.old_share or run.old_share == 1:
        raise ValueError(f"The run '{run.run_id}' was not scored on old and new images.")
    return run.scores["false_new"] / run.old_share, run.scores["false_old"] / (1 - run.old_share)


def seed_table(rows: SeedRows) -> str:
    """One line per seed, under each score one column per row."""
    scores = list(BY_SEED) if len(rows.titles) <= 2 else BY_SEED_OF_MANY
    first, *others = rows.titles.values()
    heads = chain.from_iterable((f"{BY_SEED[score]}, {first}", *others) for score in scores)
    lines = [f"| | {' | '.join(heads)} |", "|---" * (1 + len(rows.titles) * len(scores)) + "|"]
    for seed in rows.shared:
        cells = (_number(values[seed][score], score) for score in scores for values in rows.values.values())
        lines.append(f"| seed {seed} | {' | '.join(cells)} |")
    return "\n".join(lines)


def difference_table(rows: SeedRows, groups: Sequence[Sequence[int]]) -> str:
    """The second row minus the first, one line per score and one column per group of seeds."""
    reference, other = rows.titles
    heads = (f"seeds {group[0]} to {group[-1]}" for group in groups)
    lines = [
        f"| {rows.titles[other]} − {rows.titles[reference]} | {' | '.join(heads)} |",
        "|---" * (1 + len(groups)) + "|",
    ]
    for score, name in COMPARED.items():
        cells = (_difference(rows, other, reference, score, group) for group in groups)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def pair_table(rows: SeedRows, pairs: Sequence[tuple[str, str]], seeds: Sequence[int]) -> str:
    """One line per pair of rows, the first minus the second, and one column per score."""
    heads = (COMPARED[score] for score in BY_PAIR)
    lines = [f"| seeds {seeds[0]} to {seeds[-1]} | {' | '.join(heads)} |", "|---" * (1 + len(BY_PAIR)) + "|"]
    for row, reference in pairs:
        cells = (_difference(rows, row, reference, score, seeds) for score in BY_PAIR)
        lines.append(f"| {rows.titles[row]} − {rows.titles[reference]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def compare(rows: SeedRows, row: str, reference: str, score: str, seeds: Sequence[int]) -> PairedDifference | None:
    """One row minus another over the seeds that both have."""
    own, other = (
        {seed: values[seed][score] for seed in seeds if seed in values}
        for values in (rows.values[row], rows.values[reference])
    )
    return paired_difference(own, other)


def _difference(rows: SeedRows, row: str, reference: str, score: str, seeds: Sequence[int]) -> str:
    """Mean of row − reference, p of the paired sign-flip test, and in how many seeds the row is above."""
    found = compare(rows, row, reference, score, seeds)
    if found is None:
        return "–"
    mean = f"{found.summary.mean:+.2f}".replace("-0.00", "0.00")
    return f"{mean} (p = {found.p:.2g}, above in {found.above} of {found.summary.n})"


def _number(value: float, score: str) -> str:
    return f"{value:.0f}" if score == "exchanged" else f"{value:.2f}" if score == "false_old" else f"{value:.1f}"
