"""Two rows of a suite seed by seed, and their paired differences over groups of seeds, from the stored runs.

What two classes exchange with each other is counted apart: where the prototypes of two new classes settle across both,
hundreds of images change sides at once, and every other difference between two methods disappears behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from gcdbench.data.card import load_card
from gcdbench.plugins.manager import get_manager
from gcdbench.stats import paired_difference
from gcdbench.store.rundir import DONE, RunDirectory
from gcdbench.suites.read import load_suite
from gcdbench.tables.model import SCORE_TITLES
from gcdbench.tables.records import TRANSDUCTIVE, CellRecord
from gcdbench.tables.suite_table import runs_of_suite

BY_SEED = {"all": "All", "old": "Old", "new": "New", "false_old": "false-old", "exchanged": "exchanged"}
ERRORS = ("true_old_confusion", "false_new", "false_old", "true_new_confusion")
COMPARED = {
    **{score: SCORE_TITLES[score] for score in ("all", "old", "new", *ERRORS)},
    "across": "false-new and false-old together",
    "apart": "all errors but the exchange",
}


@dataclass(frozen=True, kw_only=True)
class SeedRows:
    """Values of two rows by seed: the reference's and the other's."""

    titles: tuple[str, str]
    values: tuple[Mapping[int, Mapping[str, float]], Mapping[int, Mapping[str, float]]]

    @property
    def shared(self) -> list[int]:
        """Seeds that both rows have."""
        return sorted(set(self.values[0]) & set(self.values[1]))


def read_rows(
    suite_name: str, preset: str, dataset: str, classes: tuple[str, str], records: Sequence[CellRecord]
) -> SeedRows:
    """Two rows on one dataset, with what the two classes exchange: ``SUITE:ROW,ROW``, or a suite's first two."""
    name, _, keys = suite_name.partition(":")
    suite = load_suite(name)
    rows = suite.rows_named(keys.split(",") if keys else ())[:2]
    chosen = suite.preset(preset)
    runs, _ = runs_of_suite(suite, chosen, records, get_manager(), seeds=chosen.seeds)
    names = load_card(dataset).classes
    pair = (names.index(classes[0]), names.index(classes[1]))
    first, second = (
        {run.seed: run_values(run, pair) for run in runs[row.key, dataset] if run.status == DONE}
        for row in rows
    )
    return SeedRows(titles=(rows[0].title, rows[1].title), values=(first, second))


def run_values(run: CellRecord, pair: tuple[int, int]) -> dict[str, float]:
    """Scores of a run, images that two classes ``exchanged``, and in percent all other errors (``apart`` from them).

    ``across`` counts the images on the wrong side of the border between old and new: where it stays, a border that
    moved has only given to one side what it took from the other.
    """
    confusion = RunDirectory(run.path).scores()["sets"][TRANSDUCTIVE]["confusion"]
    exchanged = confusion[pair[0]][pair[1]] + confusion[pair[1]][pair[0]]
    return {
        **run.scores,
        "exchanged": exchanged,
        "across": run.scores["false_new"] + run.scores["false_old"],
        "apart": 100 - run.scores["all"] - 100 * exchanged / run.samples,
    }


def seed_table(rows: SeedRows) -> str:
    """One line a seed, two columns a score."""
    heads = chain.from_iterable((f"{name}, {rows.titles[0]}", rows.titles[1]) for name in BY_SEED.values())
    lines = [f"| | {' | '.join(heads)} |", "|---" * (1 + 2 * len(BY_SEED)) + "|"]
    for seed in rows.shared:
        cells = (_number(values[seed][score], score) for score in BY_SEED for values in rows.values)
        lines.append(f"| seed {seed} | {' | '.join(cells)} |")
    return "\n".join(lines)


def difference_table(rows: SeedRows, groups: Sequence[Sequence[int]]) -> str:
    """The second row minus the first: mean, p of the paired sign-flip test, and in how many seeds it is above."""
    heads = (f"seeds {group[0]} to {group[-1]}" for group in groups)
    lines = [f"| {rows.titles[1]} − {rows.titles[0]} | {' | '.join(heads)} |", "|---" * (1 + len(groups)) + "|"]
    for score, name in COMPARED.items():
        cells = []
        for group in groups:
            reference, other = (
                {seed: values[seed][score] for seed in group if seed in values} for values in rows.values
            )
            found = paired_difference(other, reference)
            cells.append(
                "–"
                if found is None
                else f"{found.summary.mean:+.2f} (p = {found.p:.2g}, above in {found.above} of {found.summary.n})"
            )
        lines.append(f"| {name} | {' | '.join(cells)} |".replace("-0.00", "0.00"))
    return "\n".join(lines)


def _number(value: float, score: str) -> str:
    return f"{value:.0f}" if score == "exchanged" else f"{value:.2f}" if score == "false_old" else f"{value:.1f}"
