"""Which stored runs are in which cell of a suite's table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.records import CellRecord
from gcdbench.reporting.replicates import split_seed
from gcdbench.reporting.suites.finding import RunFinder
from gcdbench.reporting.suites.model import (
    Suite,
    SuiteColumn,
    SuitePreset,
    request_for,
    stand_in_column,
)
from gcdbench.reporting.tables.model import ColumnHead
from gcdbench.runs.record import DONE


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
