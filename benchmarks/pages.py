"""Write the stored tables and the measured numbers of README.md and docs/fidelity.md from the stored runs.

    python -m benchmarks.pages [--check]

benchmarks/results/tables: ``SUITE.md`` is a suite's table, ``SUITE.against-ROW.md`` the differences to one of its rows.
README.md: a table stands between ``<!-- runs: DATASET -->`` and ``<!-- end of runs -->``. It shows the methods as
preset ``laptop`` has them, and those variants that have several seeds.
README.md and docs: a table stands between ``<!-- means: SUITE DATASET -->`` and ``<!-- end of means -->``: a suite's
rows on one dataset, mean ± sd of the accuracies and of false-old; of certain seeds (``0``), where they follow, and with
what two classes exchange, where these follow.
docs/fidelity.md: ``<!-- seeds: SUITE DATASET CLASS CLASS -->`` to ``<!-- end of seeds -->`` holds the suite's first two
rows seed by seed, and with groups of seeds (``0-9 10-19``) behind the classes their paired differences.
docs/fidelity.md: ``<!-- border: DATASET -->`` to ``<!-- end of border -->`` holds what :mod:`benchmarks.border` finds
of SimGCD and MedXplore, of groups with several seeds and of the settings that move the border.
docs/fidelity.md: what follows ``<!-- measured -->`` in a row of the ledger is what Kvasir runs say about the variants
and settings that the row names.
"""

from __future__ import annotations

import argparse
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from benchmarks.border import border_table
from benchmarks.seed_tables import difference_table, pair_table, read_rows, seed_table
from gcdbench.core.config import flatten
from gcdbench.metrics.error_terms import BY_MAP
from gcdbench.plugins.manager import get_manager
from gcdbench.reporting.suites.finding import FROM_DATA
from gcdbench.reporting.suites.read import load_suite
from gcdbench.reporting.suites.seeds import parse_seeds
from gcdbench.reporting.tables.bootstrap import RunBootstrap
from gcdbench.reporting.tables.grid import mean_text
from gcdbench.reporting.tables.records import TRANSDUCTIVE, CellRecord, cell_records
from gcdbench.reporting.tables.render import render
from gcdbench.reporting.tables.suite_table import suite_table
from gcdbench.runs.directory import DONE
from gcdbench.runs.index import load_runs
from gcdbench.runs.plan import RunRequest, identity_of, make_plan
from gcdbench.splits.protocol import default_protocol

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "benchmarks" / "results" / "runs"
TABLES = RUNS.with_name("tables")
README = ROOT / "README.md"
LEDGER = ROOT / "docs" / "fidelity.md"
SPEED = ROOT / "docs" / "speed.md"
PRESET = "laptop"
LEDGER_DATASET = "kvasir"
SEVERAL = 3
"""Seeds from which on a variant is worth a line of the README."""
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
MEANS = ("all", "old", "new", "false_old")
MEANS_BLOCK = re.compile(
    r"(?P<begin><!-- means: (?P<suite>\S+) (?P<dataset>\S+)( (?P<seeds>\d\S*))?( (?P<one>[^\s\d-]\S*) (?P<two>\S+))?"
    r" -->\n).*?(?P<end><!-- end of means -->)",
    re.DOTALL,
)
EXCHANGE = {"exchanged": ("exchanged", 0), "apart": ("other errors", 1)}
"""Column and decimal places of what two classes exchange and of all other errors."""
SEEDS_BLOCK = re.compile(
    r"(?P<begin><!-- seeds: (?P<suite>\S+) (?P<dataset>\S+) (?P<one>\S+) (?P<two>\S+)(?P<groups>( [\d-]+)*)"
    r"(?P<pairs>( \S+:\S+)*) -->\n).*?(?P<end><!-- end of seeds -->)",
    re.DOTALL,
)
"""``SUITE DATASET CLASS CLASS``: a suite's rows seed by seed; with groups of seeds behind, the differences of its two
rows; with a group and ``ROW:REFERENCE`` pairs, the differences of those."""
BORDER_BLOCK = re.compile(
    r"(?P<begin><!-- border: (?P<dataset>\S+) -->\n).*?(?P<end><!-- end of border -->)", re.DOTALL
)
BORDER_METHODS = ("simgcd", "medxplore")
BORDER_SETTINGS = frozenset({"memax_weight", "augmentation", "beta", "acam.scale"})
BLOCK = re.compile(r"(?P<begin><!-- runs: (?P<dataset>\S+) -->\n).*?(?P<end><!-- end of runs -->)", re.DOTALL)
LEDGER_ROW = re.compile(r"^(?P<begin>\| \d+ \|.*\| (?P<settings>[^|]*) \|[^|]*<!-- measured -->)[^|]*\|$", re.MULTILINE)


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
        usual = record.preset == PRESET and record.protocol == default_protocol(record.dataset)
        if usual and record.status == DONE:
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
def _usual_identity(method: str, dataset: str) -> dict[str, object]:
    plan = make_plan(RunRequest(method=method, dataset=dataset, preset=PRESET, seed=0), get_manager())
    identity = identity_of(
        plan, manifest_sha256="", store_key="", dataset_id=dataset, weights_sha256="", world_size=1, accepted_issues=()
    )
    return flatten(identity)


def summarise(values: Sequence[float], *, places: int = 1) -> str:
    """Mean, and the standard deviation where there is one."""
    mean = f"{statistics.mean(values):.{places}f}"
    return f"{mean} ± {statistics.stdev(values):.{places}f}" if len(values) > 1 else mean


def headline_groups(groups: Sequence[Group], dataset: str) -> list[Group]:
    """Each method with the fewest changed settings that it was run with, and each variant with several seeds."""
    here = [group for group in groups if group.dataset == dataset]
    plain: dict[str, Group] = {}
    for group in sorted(here, key=lambda group: len(group.changes)):
        if not group.variant:
            plain.setdefault(group.method, group)
    return [g for g in here if plain.get(g.method) is g or (g.variant and len(g.runs) >= SEVERAL)]


def result_table(groups: Sequence[Group], dataset: str) -> str:
    """One line for each of the :func:`headline_groups`."""
    lines = [" | ".join(["| method | n | range of All", *SCORES.values()]) + " |", "|---" * (3 + len(SCORES)) + "|"]
    for group in headline_groups(groups, dataset):
        values = [run.scores["all"] for run in group.runs]
        span = f"{min(values):.1f} to {max(values):.1f}" if len(values) > 1 else "–"
        cells = (summarise([run.scores[score] for run in group.runs]) for score in SCORES)
        lines.append(" | ".join([f"| {group.name}", str(len(group.runs)), span, *cells]) + " |")
    return "\n".join(lines)


def fill_readme(page: str, groups: Sequence[Group]) -> str:
    """The page with every marked table made anew."""
    return BLOCK.sub(
        lambda found: f"{found['begin']}\n{result_table(groups, found['dataset'])}\n\n{found['end']}", page
    )


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


def fill_ledger(page: str, groups: Sequence[Group]) -> str:
    """The page with what was measured behind every mark."""
    return LEDGER_ROW.sub(lambda row: f"{row['begin']} {measured_effects(row['settings'], groups)} |", page)


def means_table(
    suite: str,
    dataset: str,
    records: Sequence[CellRecord],
    *,
    seeds: tuple[int, ...] | None = None,
    classes: tuple[str, str] | None = None,
) -> str:
    """A suite's rows on one dataset, those that were run; with two classes, what they exchange and all other errors."""
    table = suite_table(load_suite(suite), records, get_manager(), preset=PRESET, seeds=seeds, scores=MEANS)
    exchanges = read_rows(suite, PRESET, dataset, classes, records, seeds=seeds).values if classes else {}
    heads = [*(SCORES[score].strip("*") for score in MEANS), *(head for head, _ in EXCHANGE.values() if classes)]
    lines = [f"| {table.label_titles[0]} | n | {' | '.join(heads)} |", "|---|---|" + "---|" * len(heads)]
    for row in table.rows:
        entries = [table.entry(row.key, dataset, score) for score in MEANS]
        if entries[0].n:
            # Without marks: n says what is missing.
            cells = [
                mean_text(replace(entry, missing=()), table.catalogue[score])
                for entry, score in zip(entries, MEANS, strict=True)
            ]
            if classes:
                found = exchanges[row.key].values()
                cells += [summarise([run[name] for run in found], places=n) for name, (_, n) in EXCHANGE.items()]
            lines.append(f"| {row.labels[0]} | {entries[0].n} | {' | '.join(cells)} |")
    return "\n".join(lines)


def fill_means(page: str, records: Sequence[CellRecord]) -> str:
    """The page with every marked table of a suite made anew."""

    def made(found: re.Match[str]) -> str:
        seeds = parse_seeds(found["seeds"]) if found["seeds"] else None
        classes = (found["one"], found["two"]) if found["one"] else None
        table = means_table(found["suite"], found["dataset"], records, seeds=seeds, classes=classes)
        return f"{found['begin']}\n{table}\n\n{found['end']}"

    return MEANS_BLOCK.sub(made, page)


def fill_seeds(page: str, records: Sequence[CellRecord]) -> str:
    """The page with every marked table of single seeds or of differences made anew."""

    def made(found: re.Match[str]) -> str:
        rows = read_rows(found["suite"], PRESET, found["dataset"], (found["one"], found["two"]), records)
        groups = [parse_seeds(group) for group in found["groups"].split()]
        pairs = [(row, reference) for row, _, reference in (pair.partition(":") for pair in found["pairs"].split())]
        if pairs:
            table = pair_table(rows, pairs, groups[0])
        else:
            table = difference_table(rows, groups) if groups else seed_table(rows)
        return f"{found['begin']}\n{table}\n\n{found['end']}"

    return SEEDS_BLOCK.sub(made, page)


def fill_border(page: str, groups: Sequence[Group]) -> str:
    """The page with every marked table of borders made anew."""

    def made(found: re.Match[str]) -> str:
        shown = {
            group.name: group.runs
            for group in groups
            if group.dataset == found["dataset"]
            and group.method in BORDER_METHODS
            and (len(group.runs) >= SEVERAL or set(group.changes) <= BORDER_SETTINGS)
        }
        return f"{found['begin']}\n{border_table(shown)}\n\n{found['end']}"

    return BORDER_BLOCK.sub(made, page)


def suite_page(path: Path, records: Sequence[CellRecord]) -> str:
    """The table that a file of benchmarks/results/tables is named after."""
    suite, _, row = path.stem.partition(".against-")
    table = suite_table(
        load_suite(suite),
        records,
        get_manager(),
        preset=PRESET,
        bootstrap=RunBootstrap(TRANSDUCTIVE),
        against=row or None,
    )
    return render(table, "markdown")


def all_pages(records: Sequence[CellRecord]) -> dict[Path, str]:
    """Every page that holds measured numbers, as the records have them."""
    groups = group_runs(records)
    ledger = fill_border(fill_ledger(LEDGER.read_text(encoding="utf-8"), groups), groups)
    return {
        README: fill_means(fill_readme(README.read_text(encoding="utf-8"), groups), records),
        LEDGER: fill_seeds(fill_means(ledger, records), records),
        SPEED: fill_means(SPEED.read_text(encoding="utf-8"), records),
        **{path: suite_page(path, records) for path in sorted(TABLES.glob("*.md"))},
    }


def main() -> None:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail where the numbers do not follow")
    options = parser.parse_args()
    for path, text in all_pages(cell_records(load_runs(RUNS))).items():
        if options.check and path.read_text(encoding="utf-8") != text:
            raise SystemExit(f"The numbers of {path.relative_to(ROOT)} do not follow from the stored runs.")
        if not options.check:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
