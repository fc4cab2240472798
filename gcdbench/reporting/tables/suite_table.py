"""The table of a suite: its rows and columns filled from the store, the published numbers next to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from gcdbench.core.errors import ConfigError
from gcdbench.core.identity import digest
from gcdbench.datasets.protocols import card_of, default_protocol
from gcdbench.metrics.score import ScoreCatalogue
from gcdbench.models.weight_notes import note_on_weights
from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.published.reported import ReportedRow, Rounded, read_reported
from gcdbench.reporting.records import CellRecord
from gcdbench.reporting.replicates import split_seed, without_split
from gcdbench.reporting.run_marks import issue_notes
from gcdbench.reporting.scores import score_catalogue
from gcdbench.reporting.suites.costs import with_cost
from gcdbench.reporting.suites.finding import RunFinder
from gcdbench.reporting.suites.model import (
    Suite,
    SuiteColumn,
    SuitePreset,
    SuiteRow,
    request_for,
    require_protocol,
    stand_in_column,
)
from gcdbench.reporting.tables.against import difference_table
from gcdbench.reporting.tables.build import Bootstrap, Runs, build_table
from gcdbench.reporting.tables.model import ColumnHead, ResultTable, RowHead
from gcdbench.runs.plan import split_dataset_name
from gcdbench.runs.record import DONE

SET_NAMES = {"transductive": "D_u", "inductive": "the test part"}


def choose_preset(suite: Suite, records: Sequence[CellRecord]) -> str:
    """The first preset of the suite (in its own order) that any finished run was made with."""
    used = {record.preset for record in records if record.status == DONE}
    methods = {row.method for row in suite.rows}
    seen = {r.preset for r in records if r.status == DONE and r.method in methods} or used
    for name in suite.presets:
        if name in seen:
            return name
    return next(iter(suite.presets))


def runs_of_suite(
    suite: Suite,
    preset: SuitePreset,
    records: Sequence[CellRecord],
    manager: PluginManager,
    *,
    seeds: Sequence[int],
    protocol: str | None = None,
) -> tuple[dict[tuple[str, str], list[CellRecord]], list[ColumnHead]]:
    """The runs of every cell, and the columns after stand-ins: datasets that one stands in for become one column."""
    finder = RunFinder(records, manager)
    runs: dict[tuple[str, str], list[CellRecord]] = {}
    heads: list[ColumnHead] = []
    replaced: list[str] = []
    for column in suite.columns:
        cells = _cells(suite, column, preset, finder, seeds, protocol) if preset.stand_in != "always" else {}
        cells, left_out = _on_one_split(cells)
        if preset.stand_in == "never" or any(cells.values()):
            heads.append(ColumnHead(key=column.dataset, title=column.title, left_out=left_out))
            runs |= {(row, column.dataset): found for row, found in cells.items()}
        else:
            replaced.append(column.title)
    if replaced:
        column = stand_in_column(suite, suite.columns[0], manager)
        cells = _cells(suite, column, preset, finder, seeds, None)
        title = f"{column.dataset} in place of {', '.join(replaced)}"
        heads.append(ColumnHead(key=column.dataset, title=title, stand_in_for=tuple(replaced)))
        runs |= {(row, column.dataset): found for row, found in cells.items()}
    return runs, heads


def _cells(
    suite: Suite,
    column: SuiteColumn,
    preset: SuitePreset,
    finder: RunFinder,
    seeds: Sequence[int],
    protocol: str | None,
) -> dict[str, list[CellRecord]]:
    return {
        row.key: [
            record
            for seed in seeds
            for record in finder.find(request_for(suite, row, column, preset, seed, protocol=protocol))
        ]
        for row in suite.rows
    }


def _on_one_split(cells: Mapping[str, Sequence[CellRecord]]) -> tuple[dict[str, list[CellRecord]], int]:
    """Only runs on the images and the split that most finished runs of a column have, and how many others finished.

    A request does not say which: its protocol makes another split of other images, or of images that were added. Where
    each seed draws its split, the same holds seed by seed.
    """
    done = [record for found in cells.values() for record in found if record.status == DONE]
    usual_images = _most_common((record.image_size, record.images) for record in done)
    done = [record for record in done if record.images == usual_images[record.image_size]]
    usual_split = _most_common((split_seed(record), record.split_sha256) for record in done)

    def usual(record: CellRecord) -> bool:
        same_images = record.images == usual_images.get(record.image_size, record.images)
        return same_images and record.split_sha256 == usual_split.get(split_seed(record), record.split_sha256)

    kept = {row: [record for record in found if usual(record)] for row, found in cells.items()}
    left_out = sum(record.status == DONE and not usual(record) for found in cells.values() for record in found)
    return kept, left_out


def _most_common(pairs: Iterable[tuple[int, str]]) -> dict[int, str]:
    """For each first member the second one that it comes with most often."""
    counted = Counter(pairs)
    return {first: second for (first, second), _ in reversed(counted.most_common())}


def reported_numbers(suite: Suite, heads: Sequence[ColumnHead]) -> dict[tuple[str, str], dict[str, Rounded]]:
    """Published numbers of each cell, by the suite's own naming of rows; never next to a stand-in."""
    printed: list[ReportedRow] = []
    for name in suite.reported:
        printed += read_reported(suite.folder / name)
    found: dict[tuple[str, str], dict[str, Rounded]] = {}
    for row in suite.rows:
        for head in heads:
            if not row.reported_method or head.stand_in_for:
                continue
            scores = found.setdefault((row.key, head.key), {})
            for line in printed:
                if _same_line(line, row, head.key, suite.reported_table):
                    scores |= line.scores
    return found


def _same_line(line: ReportedRow, row: SuiteRow, dataset: str, table: str) -> bool:
    in_table = not line.table or not table or line.table == table
    return in_table and (line.method, line.variant, line.dataset) == (
        row.reported_method,
        row.reported_variant,
        dataset,
    )


def suite_table(
    suite: Suite,
    records: Sequence[CellRecord],
    manager: PluginManager,
    *,
    preset: str | None = None,
    seeds: Sequence[int] | None = None,
    protocol: str | None = None,
    scores: Sequence[str] | None = None,
    evaluation: str = "transductive",
    bootstrap: Bootstrap | None = None,
    against: str | None = None,
) -> ResultTable:
    """The suite's table from the runs in the store; ``against`` a row, the paired differences to it."""
    require_protocol(suite, protocol, manager)
    chosen = suite.preset(preset or choose_preset(suite, records))
    wanted = tuple(seeds or chosen.seeds)
    runs, heads = runs_of_suite(suite, chosen, records, manager, seeds=wanted, protocol=protocol)
    if suite.kind == "cost":
        runs = {cell: [with_cost(record) for record in found] for cell, found in runs.items()}
    content: _Content = {
        "name": suite.name,
        "title": suite.title,
        "caption": _caption(suite, chosen, heads, runs, wanted, protocol, evaluation, manager),
        "label_titles": (suite.row_title,),
        "rows": [RowHead(key=row.key, labels=(row.title,)) for row in suite.rows],
        "columns": heads,
        "scores": scores or suite.scores,
        "runs": runs,
        "catalogue": score_catalogue(manager),
        "seeds": wanted,
        "notes": [
            *suite.notes,
            *_run_notes(heads, runs),
            *(
                f"{head.title}: {head.left_out} finished run(s) on other images or another split are left out."
                for head in heads
                if head.left_out
            ),
            *_other_seeds(suite, heads, runs, records, wanted),
            *_not_installed(suite, manager),
        ],
    }
    if against is not None:
        return difference_table(**content, reference=find_row(suite, against))
    # Published numbers are of D_u under v2, so they are shown next to nothing else.
    reported = reported_numbers(suite, heads) if evaluation == "transductive" else {}
    if any(reported.values()) and chosen.name != suite.reported_preset:
        content["notes"] = [
            *content["notes"],
            f"Reported numbers come from the paper's own set-up; where preset {chosen.name} differs from it (backbone, "
            "input, epochs), Δ holds that difference too.",
        ]
    return build_table(**content, reported=reported, bootstrap=bootstrap)


class _Content(TypedDict):
    """What both kinds of table are made of."""

    name: str
    title: str
    caption: str
    label_titles: tuple[str, ...]
    rows: Sequence[RowHead]
    columns: Sequence[ColumnHead]
    scores: Sequence[str]
    runs: Runs
    catalogue: ScoreCatalogue
    seeds: Sequence[int]
    notes: Sequence[str]


def _caption(
    suite: Suite,
    preset: SuitePreset,
    heads: Sequence[ColumnHead],
    runs: Runs,
    seeds: Sequence[int],
    protocol: str | None,
    evaluation: str,
    manager: PluginManager,
) -> str:
    used = sorted({record.protocol for found in runs.values() for record in found if record.protocol})
    if not used:
        used = sorted(
            {
                protocol or c.protocol or suite.protocol or default_protocol(card_of(c.dataset, manager))
                for c in suite.columns
            }
        )
    backbones = sorted({f"{r.backbone} at {r.image_size} px" for found in runs.values() for r in found if r.backbone})
    known = preset.name in manager.names("presets")
    summary = manager.get("presets", preset.name).summary if known else ""
    what = f"Percent of {SET_NAMES.get(evaluation, evaluation)}, one Hungarian map over all of it (v2)"
    if suite.kind == "cost":
        what = "The saved model at inference, one image at a time, a multiplication and an addition as two FLOPs"
    parts = [
        what,
        f"protocol {', '.join(used)}",
        f"K {suite.k_policy}",
        f"preset {preset.name}" + (f" ({summary})" if summary else ""),
    ]
    if backbones:
        parts.append("; ".join(backbones))
    repeated = "split" if suite.replicate == "split" else "seed"
    parts.append(f"mean ± sd (ddof 1) over {len(seeds)} planned {repeated}{'s' if len(seeds) != 1 else ''}")
    if suite.replicate == "split":
        parts.append("each seed draws its split")
    elif len(seeds) > 1 and _one_split(heads, runs):
        parts.append("the split is the same for every seed")
    if any(head.stand_in_for for head in heads):
        parts.append(f"{suite.stand_in_dataset} stands in for data that was not available")
    return "; ".join(parts) + "."


def _one_split(heads: Sequence[ColumnHead], runs: Runs) -> bool:
    """Whether all runs of each dataset had the same labelled and unlabelled images."""
    splits: dict[str, set[object]] = {head.key: set() for head in heads}
    for (_, column), found in runs.items():
        splits[column] |= {record.split_sha256 for record in found}
    return any(splits.values()) and all(len(split) <= 1 for split in splits.values())


def _other_seeds(
    suite: Suite, heads: Sequence[ColumnHead], runs: Runs, records: Sequence[CellRecord], seeds: Sequence[int]
) -> list[str]:
    """Which cells have finished runs of seeds that this table leaves out: a mean may be better known than it shows."""
    keys: dict[str, str] = {}

    def like(record: CellRecord) -> str:
        """What must be equal in runs of other seeds."""
        if suite.replicate == "seed":
            return record.settings
        if record.settings not in keys:
            keys[record.settings] = digest(without_split(record.common.identity))
        return keys[record.settings]

    more: dict[str, set[int]] = {}
    for record in records:
        of_kind = suite.replicate == "seed" or record.seed == split_seed(record)
        if record.status == DONE and record.seed not in seeds and of_kind:
            more.setdefault(like(record), set()).add(record.seed)
    found = [
        f"{row.title} on {head.title} ({len(left_out)})"
        for head in heads
        for row in suite.rows
        if (left_out := set().union(*(more.get(like(r), set()) for r in runs.get((row.key, head.key), ()))))
    ]
    return [f"Stored runs of other seeds are left out: {', '.join(found)}; '--seeds' includes them."] if found else []


def _not_installed(suite: Suite, manager: PluginManager) -> list[str]:
    """Rows and columns whose stored runs may not be recognised here."""
    methods = {row.method for row in suite.rows} - set(manager.names("methods"))
    datasets = {split_dataset_name(column.dataset)[0] for column in suite.columns} - set(manager.names("datasets"))
    missing = [*(f"method '{name}'" for name in sorted(methods)), *(f"dataset '{name}'" for name in sorted(datasets))]
    if not missing:
        return []
    return [f"Not installed here: {', '.join(missing)}. Stored runs may be missing from this table for that reason."]


def _run_notes(heads: Sequence[ColumnHead], runs: Runs) -> list[str]:
    notes = [
        f"The dataset {head.key} stands in for {', '.join(head.stand_in_for)}: "
        "these numbers show that everything runs, and say nothing about those datasets."
        for head in heads
        if head.stand_in_for
    ]
    used = [record for found in runs.values() for record in found if record.status == DONE]
    rebuilt = sorted({record.method for record in used if record.reconstruction})
    if rebuilt:
        notes.append(f"Reconstructions without reference code: {', '.join(rebuilt)}.")
    return notes + issue_notes(used) + _weight_notes(runs)


def _weight_notes(runs: Runs) -> list[str]:
    """What is known of the weights that rows were made with, and which rows these are unless it is all of them."""
    rows_of: dict[str, set[str]] = {}
    for (row, _), found in runs.items():
        for record in found:
            if record.status == DONE:
                rows_of.setdefault(str(record.identity.get("weights_sha256", "")), set()).add(row)
    begun = set().union(*rows_of.values())
    return [
        note if rows == begun else f"{note[:-1]}; rows {', '.join(sorted(rows))}."
        for digest, rows in sorted(rows_of.items())
        if (note := note_on_weights(digest)) is not None
    ]


def find_row(suite: Suite, name: str) -> str:
    """Key of the row that people call by its key, its title or its method."""
    rows = {row.key: (row.key, row.title, row.method, row.reported_method) for row in suite.rows}
    if name in rows:
        return name
    found = next((key for key, names in rows.items() if name in names), None)
    if found is None:
        raise ConfigError(f"Suite '{suite.name}' has no row '{name}'.", hint=f"Rows: {', '.join(rows)}.")
    return found


def find_cell(table: ResultTable, method: str, dataset: str, suite: Suite) -> tuple[str, str]:
    """Row and column key of a cell named by people: a row as in :func:`find_row`, and dataset or its title."""
    row = find_row(suite, method)
    columns = {head.key: (head.key, head.title, *head.stand_in_for) for head in table.columns}
    titles: Mapping[str, str] = {column.dataset: column.title for column in suite.columns}
    column = next((key for key, names in columns.items() if dataset in names or titles.get(dataset) in names), None)
    if column is None:
        raise ConfigError(f"Suite '{suite.name}' has no column '{dataset}'.", hint=f"Columns: {', '.join(columns)}.")
    return row, column
