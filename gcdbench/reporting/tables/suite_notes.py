"""Sentences below a suite's table: what was left out, what stands in, what is a reconstruction."""

from __future__ import annotations

from collections.abc import Sequence

from gcdbench.core.identity import digest
from gcdbench.models.weight_notes import note_on_weights
from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.records import CellRecord
from gcdbench.reporting.replicates import split_seed, without_split
from gcdbench.reporting.run_marks import issue_notes
from gcdbench.reporting.suites.model import (
    Suite,
)
from gcdbench.reporting.tables.build import Runs
from gcdbench.reporting.tables.model import ColumnHead
from gcdbench.runs.plan import split_dataset_name
from gcdbench.runs.record import DONE


def other_seeds(
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


def not_installed(suite: Suite, manager: PluginManager) -> list[str]:
    """Rows and columns whose stored runs may not be recognised here."""
    methods = {row.method for row in suite.rows} - set(manager.names("methods"))
    datasets = {split_dataset_name(column.dataset)[0] for column in suite.columns} - set(manager.names("datasets"))
    missing = [*(f"method '{name}'" for name in sorted(methods)), *(f"dataset '{name}'" for name in sorted(datasets))]
    if not missing:
        return []
    return [f"Not installed here: {', '.join(missing)}. Stored runs may be missing from this table for that reason."]


def run_notes(heads: Sequence[ColumnHead], runs: Runs) -> list[str]:
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
    return notes + issue_notes(used) + weight_notes(runs)


def weight_notes(runs: Runs) -> list[str]:
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
