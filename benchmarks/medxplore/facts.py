"""What the pages of the study say in numbers: every function here is a word of the templates.

Rows are those of the study's suites under preset ``laptop``. ``seeds`` are written as on the command line ("0-9"); ""
means those that the suite plans. Values that a run does not score itself are those of
:func:`benchmarks.medxplore.seed_tables.run_values`.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from benchmarks.medxplore.border import border_table
from benchmarks.medxplore.groups import (
    PRESET,
    SCORES,
    SEVERAL,
    Group,
    group_runs,
    headline_groups,
    result_table,
    summarise,
)
from benchmarks.medxplore.places import FIGURES, TOKENS
from benchmarks.medxplore.seed_tables import (
    STUDY,
    SeedRows,
    compare,
    difference_table,
    pair_table,
    read_rows,
    seed_table,
    taken_for,
)
from benchmarks.medxplore.split_tables import (
    CELLS,
    NETWORKS,
    Above,
    cell_table,
    count_above,
    read_splits,
    screening_table,
    split_table,
)
from benchmarks.medxplore.verdict import Finding, findings, verdict_lines
from gcdbench.api import (
    DONE,
    CellRecord,
    PairedDifference,
    ResultTable,
    get_manager,
    load_suite,
    mean_text,
    parse_seeds,
    read_record,
    read_reported,
    runs_of_suite,
    suite_table,
)

PAIRS = {"kvasir": ("polyps", "ulcerative-colitis")}
"""Two classes of a dataset whose exchange is counted apart."""
APART = 60
"""Fewer exchanged images than this, of 1,000, mean that the two classes are told apart."""
MEANS = ("all", "old", "new", "false_old")
EXCHANGE = {"exchanged": ("exchanged", 0), "apart": ("other errors", 1)}
"""Column and decimal places of what two classes exchange and of all other errors."""
BORDER_METHODS = ("simgcd", "medxplore")
BORDER_SETTINGS = frozenset({"memax_weight", "augmentation", "beta", "acam.scale"})


@dataclass(frozen=True, kw_only=True)
class Versus:
    """One row minus another over shared seeds."""

    found: PairedDifference

    @property
    def mean(self) -> float:
        """Mean difference."""
        return self.found.summary.mean

    @property
    def p(self) -> float:
        """Of the two-sided sign-flip test, not corrected."""
        return self.found.p

    @property
    def above(self) -> int:
        """Seeds in which the first row is above."""
        return self.found.above

    @property
    def n(self) -> int:
        """Shared seeds."""
        return self.found.summary.n

    @property
    def interval(self) -> tuple[float, float]:
        """Student's 95 % interval of the mean."""
        interval = self.found.summary.interval
        if interval is None:
            raise ValueError("one seed has no interval")
        return interval.low, interval.high


class Facts:
    """Numbers and tables from stored runs."""

    def __init__(self, records: Sequence[CellRecord]) -> None:
        self.records = records
        self._rows: dict[tuple[str, str, str], SeedRows] = {}

    @cached_property
    def groups(self) -> list[Group]:
        """Finished runs of the preset, by what makes them different."""
        return group_runs(self.records)

    @cached_property
    def _findings(self) -> dict[str, Finding]:
        return findings(self.records)

    def rows(self, suite: str, dataset: str = "kvasir", seeds: str = "") -> SeedRows:
        """Every value of every row of a suite, by seed."""
        key = (suite, dataset, seeds)
        if key not in self._rows:
            wanted = parse_seeds(seeds) if seeds else None
            self._rows[key] = read_rows(suite, PRESET, dataset, PAIRS.get(dataset), self.records, seeds=wanted)
        return self._rows[key]

    # ---- numbers

    def values(self, suite: str, row: str, score: str, seeds: str = "", dataset: str = "kvasir") -> list[float]:
        """One value per seed."""
        found = self.rows(suite, dataset, seeds).values[row]
        return [found[seed][score] for seed in sorted(found)]

    def mean(self, suite: str, row: str, score: str, seeds: str = "", dataset: str = "kvasir") -> float:
        """Over the seeds."""
        return statistics.mean(self.values(suite, row, score, seeds, dataset))

    def versus(
        self, suite: str, row: str, reference: str, score: str, seeds: str = "", dataset: str = "kvasir"
    ) -> Versus:
        """One row minus another, seed by seed."""
        rows = self.rows(suite, dataset, seeds)
        found = compare(rows, row, reference, score, sorted(set(rows.values[row]) & set(rows.values[reference])))
        if found is None:
            raise ValueError(f"'{row}' and '{reference}' of suite '{suite}' share no seed")
        return Versus(found=found)

    def differences(
        self, suite: str, row: str, reference: str, score: str, seeds: str = "", dataset: str = "kvasir"
    ) -> list[float]:
        """One row minus another in each seed that both have."""
        rows = self.rows(suite, dataset, seeds).values
        shared = sorted(set(rows[row]) & set(rows[reference]))
        return [rows[row][seed][score] - rows[reference][seed][score] for seed in shared]

    def holm(self, suite: str, row: str, reference: str, score: str, seeds: str = "") -> float:
        """p of the same difference on Kvasir with Holm's correction for the rows of the suite."""
        wanted = parse_seeds(seeds) if seeds else None
        table = self._table(suite, seeds=wanted, scores=(score,), against=reference)
        found = table.entry(row, "kvasir", score).p
        if found is None:
            raise ValueError(f"'{row}' and '{reference}' of suite '{suite}' share no seed")
        return found

    def paper(self, method: str, score: str, dataset: str = "kvasir") -> str:
        """What the paper prints, as it prints it."""
        suite = load_suite(f"{STUDY}/errors", get_manager())
        for name in suite.reported:
            for line in read_reported(suite.folder / name):
                same = (line.method, line.dataset, line.variant) == (method, dataset, "")
                if same and line.table in ("", suite.reported_table) and score in line.scores:
                    return str(line.scores[score])
        raise ValueError(f"the paper prints no {score} of {method} on {dataset}")

    def frozen(self, method: str, score: str, dataset: str = "kvasir") -> float:
        """A method as it is, on split 0: the mean over its seeds."""
        return next(g for g in headline_groups(self.groups, dataset) if g.method == method).mean(score)

    def published_below(self, bound: float, dataset: str = "kvasir") -> list[str]:
        """Titles of the methods whose published All is below a bound, in the order of the paper's table."""
        suite = load_suite(f"{STUDY}/main", get_manager())
        printed = {
            line.method: line.scores["all"].value
            for name in suite.reported
            for line in read_reported(suite.folder / name)
            if (line.table, line.dataset, line.variant) == (suite.reported_table, dataset, "")
        }
        return [row.title.partition(" (")[0] for row in suite.rows if printed.get(row.reported_method, bound) < bound]

    def where(self, suite: str, row: str, reference: str, score: str, *, mixed: bool, seeds: str = "") -> list[float]:
        """The differences in those seeds in which the reference mixes the two classes of Kvasir, or does not."""
        exchanged = self.rows(suite, seeds=seeds).values[reference]
        shared = sorted(set(self.rows(suite, seeds=seeds).values[row]) & set(exchanged))
        found = zip(shared, self.differences(suite, row, reference, score, seeds), strict=True)
        return [value for seed, value in found if (exchanged[seed]["exchanged"] >= APART) == mixed]

    def taken(self, suite: str, row: str, truth: str, assigned: str, seeds: str = "") -> list[float]:
        """Images of one class of Kvasir that were taken for another, one value per seed."""
        return [float(taken_for(run, truth, assigned)) for run in self._runs(suite, row, seeds)]

    def events(self, suite: str, row: str, key: str, seeds: str = "") -> list[list[float]]:
        """A figure that MedXplore notes at the end of each epoch on Kvasir: for each seed, one value per epoch."""
        runs = self._runs(suite, row, seeds)
        found = ([event.more[key] for event in read_record(run.path).events if key in event.more] for run in runs)
        return [[float(value) for value in values] for values in found if values]

    # ---- tables

    def results(self, dataset: str, only: str = "") -> str:
        """Methods as the preset has them, and variants with several seeds; ``only`` those of a list of names."""
        return result_table(self.groups, dataset, only=only.split())

    def means(self, suite: str, dataset: str = "kvasir", seeds: str = "", exchange: bool = False) -> str:
        """A suite's rows on one dataset, those that were run; ``exchange`` adds what the two classes exchange."""
        table = self._table(suite, seeds=parse_seeds(seeds) if seeds else None, scores=MEANS)
        exchanges = self.rows(suite, dataset, seeds).values if exchange else {}
        heads = [*(SCORES[score].strip("*") for score in MEANS), *(head for head, _ in EXCHANGE.values() if exchange)]
        lines = [f"| {table.label_titles[0]} | n | {' | '.join(heads)} |", "|---|---|" + "---|" * len(heads)]
        for row in table.rows:
            entries = [table.entry(row.key, dataset, score) for score in MEANS]
            if entries[0].n:
                # Without marks: n says what is missing.
                cells = [
                    mean_text(replace(entry, missing=()), table.catalogue[score])
                    for entry, score in zip(entries, MEANS, strict=True)
                ]
                if exchange:
                    found = exchanges[row.key].values()
                    cells += [summarise([run[name] for run in found], places=n) for name, (_, n) in EXCHANGE.items()]
                lines.append(f"| {row.labels[0]} | {entries[0].n} | {' | '.join(cells)} |")
        return "\n".join(lines)

    # ---- over splits

    def splits(self, suite: str, dataset: str = "kvasir") -> str:
        """A suite's rows over splits: median, failures and both false-olds."""
        return split_table(read_splits(suite, dataset, self.records))

    def measured(self, suite: str, row: str, dataset: str = "kvasir") -> int:
        """How many splits a row has."""
        return len(read_splits(suite, dataset, self.records).runs[row])

    def regime(self) -> str:
        """SimGCD and MedXplore in every cell of the paper's regime."""
        return cell_table(CELLS, self.records, "cell")

    def networks(self) -> str:
        """SimGCD and MedXplore with every network."""
        return cell_table(NETWORKS, self.records, "network")

    def above(self, kind: str, score: str) -> Above:
        """In how many cells of the regime, or networks, MedXplore's median is above SimGCD's."""
        return count_above({"regime": CELLS, "networks": NETWORKS}[kind], self.records, score)

    def screening(self) -> str:
        """What chooses the recommended setting."""
        return screening_table(self.records)

    def verdict(self) -> str:
        """The confirmatory comparison, as the command prints it."""
        return "\n".join(verdict_lines(self.records))

    def confirmed(self, row: str) -> Finding:
        """What the confirmatory comparison says of a row."""
        return self._findings[row]

    def drawn(self, name: str) -> bool:
        """Whether a figure of that name is there."""
        return (FIGURES / name).is_file()

    # ---- tables by seed

    def by_seed(self, suite: str) -> str:
        """A suite's rows on Kvasir, seed by seed."""
        return seed_table(self.rows(suite))

    def by_group(self, suite: str, *groups: str) -> str:
        """The second row of a suite minus the first on Kvasir, over groups of seeds."""
        return difference_table(self.rows(suite), [parse_seeds(group) for group in groups])

    def by_pair(self, suite: str, seeds: str, *pairs: tuple[str, str]) -> str:
        """Differences of pairs of a suite's rows on Kvasir."""
        return pair_table(self.rows(suite), pairs, parse_seeds(seeds))

    def border(self, dataset: str = "kvasir") -> str:
        """Where the border between old and new lies: of groups with several seeds and of settings that move it."""
        shown: Mapping[str, Sequence[CellRecord]] = {
            group.name: group.runs
            for group in self.groups
            if group.dataset == dataset
            and group.method in BORDER_METHODS
            and (len(group.runs) >= SEVERAL or set(group.changes) <= BORDER_SETTINGS)
        }
        return border_table(shown)

    def tokens(self) -> str:
        """What :mod:`benchmarks.medxplore.tokens` measured while the weights were there, with the run's accuracies."""
        known = {run.run_id: (group.name, run.scores) for group in self.groups for run in group.runs}
        lines = [
            "| run | seed | epochs | input | All / Old / New | rank of tokens | rank of pooled | place | cosine |",
            "|---" * 9 + "|",
        ]
        measured = json.loads(TOKENS.read_text(encoding="utf-8"))
        order = sorted(measured.items(), key=lambda item: (item[1]["epochs"], item[1]["image_size"], -_rank(item[1])))
        for run_id, found in order:
            name, scores = known.get(run_id, (f"`{found['run']}`", {}))
            accuracies = " / ".join(f"{scores[score]:.1f}" for score in ("all", "old", "new") if score in scores)
            lines.append(
                f"| {name} | {found['seed']} | {found['epochs']} | {found['image_size']} px | "
                f"{accuracies or 'not stored'} | {_rank(found):.0f} | {found['rank pooled']:.0f} | "
                f"{found['place']:.2f} | {found['cosine']:.2f} |"
            )
        return "\n".join(lines)

    def _runs(self, suite: str, row: str, seeds: str) -> list[CellRecord]:
        chosen = load_suite(f"{STUDY}/{suite}", get_manager())
        preset = chosen.preset(PRESET)
        wanted = parse_seeds(seeds) if seeds else preset.seeds
        runs, _ = runs_of_suite(chosen, preset, self.records, get_manager(), seeds=wanted)
        return [run for run in runs[row, "kvasir"] if run.status == DONE]

    def _table(
        self, suite: str, *, seeds: Sequence[int] | None, scores: Sequence[str], against: str | None = None
    ) -> ResultTable:
        chosen = load_suite(f"{STUDY}/{suite}", get_manager())
        return suite_table(
            chosen, self.records, get_manager(), preset=PRESET, seeds=seeds, scores=scores, against=against
        )


def _rank(found: Mapping[str, float]) -> float:
    return found["rank tokens"]
