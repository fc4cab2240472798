"""A table of paired differences: every row minus one row, over the seeds that both have."""

from __future__ import annotations

from collections.abc import Sequence

from gcdbench.core.errors import ConfigError
from gcdbench.metrics.score import ScoreCatalogue
from gcdbench.reporting.records import CellRecord
from gcdbench.reporting.spent import SPENT
from gcdbench.reporting.statistics import PairedDifference, holm, paired_difference, pairs_needed
from gcdbench.reporting.tables.build import Runs, finished, scores_by_seed, standing_notes
from gcdbench.reporting.tables.model import ColumnHead, Entry, ResultTable, RowHead

LEVEL = 0.05


def difference_table(
    *,
    name: str,
    title: str,
    caption: str,
    label_titles: tuple[str, ...],
    rows: Sequence[RowHead],
    columns: Sequence[ColumnHead],
    scores: Sequence[str],
    runs: Runs,
    catalogue: ScoreCatalogue,
    reference: str,
    seeds: Sequence[int] | None = None,
    notes: Sequence[str] = (),
) -> ResultTable:
    """Differences of all rows to the row with key ``reference``; bold where the paired test allows a claim."""
    base = next(row for row in rows if row.key == reference)
    others = [row for row in rows if row.key != reference]
    shown = [score for score in scores if score not in SPENT]
    if not shown:
        raise ConfigError("What a run cost is not compared seed by seed.", hint="For example --scores all,old,new.")
    entries: dict[tuple[str, str, str], Entry] = {}
    for column in columns:
        for score in shown:
            expected = scores_by_seed(runs.get((reference, column.key), ()), score, seeds)
            found = {
                row.key: paired_difference(scores_by_seed(runs.get((row.key, column.key), ()), score, seeds), expected)
                for row in others
            }
            adjusted = _adjusted(found)
            for row in others:
                cell = runs.get((row.key, column.key), ())
                entries[row.key, column.key, score] = _entry(
                    found[row.key], adjusted.get(row.key), cell, set(expected), seeds
                )
    # A column in which nothing can be compared says nothing here; the suite's own table shows what is missing.
    compared = {column for (_, column, _), entry in entries.items() if entry.n}
    label = " ".join(filter(None, base.labels))
    explained = (
        "p: two-sided sign-flip test of paired differences, with Holm's correction for the rows of one score; "
        f"bold: p ≤ {LEVEL:g}; above: in how many of the shared seeds the row is above {label}."
    )
    return ResultTable(
        name=name,
        title=f"{title}: differences to {label}",
        caption=caption,
        label_titles=label_titles,
        rows=tuple(others),
        columns=tuple(column for column in columns if column.key in compared or not compared),
        scores=tuple(shown),
        entries=entries,
        catalogue=catalogue,
        notes=(*notes, *standing_notes(entries), explained, *_too_few(entries, columns)),
        reference=label,
    )


def _too_few(entries: dict[tuple[str, str, str], Entry], columns: Sequence[ColumnHead]) -> list[str]:
    """One sentence for the columns in which no difference, however large, could be significant."""
    short: dict[tuple[int, int], list[str]] = {}
    for column in columns:
        counts: dict[str, list[int]] = {}  # pairs of each row, by the score whose rows are tested together
        for (_, key, score), entry in entries.items():
            if key == column.key and entry.n:
                counts.setdefault(score, []).append(entry.n)
        if not counts:
            continue
        pairs, rows = max(max(found) for found in counts.values()), min(len(found) for found in counts.values())
        if pairs < (needed := pairs_needed(rows, LEVEL)):
            short.setdefault((pairs, needed), []).append(column.title)
    return [
        f"{', '.join(filter(None, titles)) or 'Here'}: n = {pairs} is too small for any p ≤ {LEVEL:g}, however large a "
        f"difference is; with this many rows, {needed} shared seeds are needed."
        for (pairs, needed), titles in short.items()
    ]


def _adjusted(found: dict[str, PairedDifference | None]) -> dict[str, float]:
    tested = {key: difference.p for key, difference in found.items() if difference is not None}
    return dict(zip(tested, holm(list(tested.values())), strict=True))


def _entry(
    difference: PairedDifference | None,
    p: float | None,
    records: Sequence[CellRecord],
    shared_with: set[object],
    seeds: Sequence[int] | None,
) -> Entry:
    pairs = {seed: record for seed, record in finished(records).items() if seed in shared_with}
    missing = tuple(seed for seed in seeds or () if seed not in pairs)
    if difference is None or p is None:
        return Entry(missing=missing)
    summary = difference.summary
    return Entry(
        n=summary.n,
        mean=summary.mean,
        sd=summary.sd,
        low=summary.interval.low if summary.interval else None,
        high=summary.interval.high if summary.interval else None,
        interval_kind=summary.interval.kind if summary.interval else "",
        bold=p <= LEVEL,
        missing=missing,
        runs=tuple(record.run_id for _, record in sorted(pairs.items())),
        p=p,
        above=difference.above,
    )
