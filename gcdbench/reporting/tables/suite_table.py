"""The table of a suite: its rows and columns filled from the store, the published numbers next to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from gcdbench.core.errors import ConfigError
from gcdbench.datasets.protocols import card_of, default_protocol
from gcdbench.metrics.score import ScoreCatalogue
from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.published.reported import ReportedRow, Rounded, read_reported
from gcdbench.reporting.records import CellRecord
from gcdbench.reporting.scores import score_catalogue
from gcdbench.reporting.suites.costs import with_cost
from gcdbench.reporting.suites.model import (
    Suite,
    SuitePreset,
    SuiteRow,
    require_protocol,
)
from gcdbench.reporting.tables.against import difference_table
from gcdbench.reporting.tables.build import Bootstrap, Runs, build_table
from gcdbench.reporting.tables.model import ColumnHead, ResultTable, RowHead
from gcdbench.reporting.tables.suite_cells import runs_of_suite
from gcdbench.reporting.tables.suite_notes import not_installed, other_seeds, run_notes
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
            *run_notes(heads, runs),
            *(
                f"{head.title}: {head.left_out} finished run(s) on other images or another split are left out."
                for head in heads
                if head.left_out
            ),
            *other_seeds(suite, heads, runs, records, wanted),
            *not_installed(suite, manager),
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
