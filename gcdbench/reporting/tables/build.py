"""Entries of a table from the runs behind them, and the marks that statistics allows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from gcdbench.metrics.score import Score, ScoreCatalogue
from gcdbench.reporting.published.reported import Rounded
from gcdbench.reporting.records import CellRecord
from gcdbench.reporting.statistics import Interval, compare_with_best, mean_rank, summarise
from gcdbench.reporting.tables.model import ColumnHead, Entry, ResultTable, RowHead
from gcdbench.runs.record import DONE, FAILED

Runs = Mapping[tuple[str, str], Sequence[CellRecord]]
"""(row key, column key) -> every run of that cell, whatever its state."""

Reported = Mapping[tuple[str, str], Mapping[str, Rounded]]

Bootstrap = Callable[[CellRecord, str], Interval | None]
"""Interval of one score of one run over its images; used where a cell has a single run."""

HEADLINE = "all"


def finished(records: Sequence[CellRecord]) -> dict[int, CellRecord]:
    """One finished run for each seed: the first by run id, in case several differ in settings that do not matter."""
    found: dict[int, CellRecord] = {}
    for record in sorted(records, key=attrgetter("run_id")):
        if record.status == DONE:
            found.setdefault(record.seed, record)
    return found


def make_entry(
    records: Sequence[CellRecord],
    score: Score,
    *,
    seeds: Sequence[int] | None,
    reported: Rounded | None,
    bootstrap: Bootstrap | None,
) -> Entry:
    """Mean, sd and interval of one score over the seeds of one cell."""
    done = {seed: record for seed, record in finished(records).items() if seeds is None or seed in seeds}
    scored = {seed: record for seed, record in done.items() if score.key in record.scores}
    entry = Entry(
        reported=reported,
        missing=tuple(seed for seed in seeds or () if seed not in done),
        failed=sum(record.status == FAILED for record in records),
        runs=tuple(record.run_id for _, record in sorted(scored.items())),
    )
    if not scored:
        return entry
    summary = summarise([scored[seed].scores[score.key] for seed in sorted(scored)])
    interval = summary.interval
    if interval is None and bootstrap is not None:
        interval = bootstrap(next(iter(scored.values())), score.key)
    if interval is not None:  # Student's interval of a few runs knows no bounds
        interval = replace(interval, low=score.clipped(interval.low), high=score.clipped(interval.high))
    return replace(
        entry,
        n=summary.n,
        mean=summary.mean,
        sd=summary.sd,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        interval_kind=interval.kind if interval else "",
    )


def build_table(
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
    seeds: Sequence[int] | None = None,
    reported: Reported | None = None,
    bootstrap: Bootstrap | None = None,
    notes: Sequence[str] = (),
) -> ResultTable:
    """All entries, bold where the paired test allows, and notes that say what may not be claimed."""
    reported = reported or {}
    entries: dict[tuple[str, str, str], Entry] = {}
    for row in rows:
        for column in columns:
            for score in scores:
                entries[row.key, column.key, score] = make_entry(
                    runs.get((row.key, column.key), ()),
                    catalogue[score],
                    seeds=seeds,
                    reported=reported.get((row.key, column.key), {}).get(score),
                    bootstrap=bootstrap,
                )
    verdicts = _mark_best(entries, rows, columns, [catalogue[score] for score in scores], runs, seeds)
    together = _over_columns(rows, columns, runs, seeds)
    begun = {column for (_, column, _), entry in entries.items() if entry.n}
    return ResultTable(
        name=name,
        title=title,
        caption=caption,
        label_titles=label_titles,
        rows=tuple(rows),
        columns=tuple(columns),
        scores=tuple(scores),
        entries=entries,
        catalogue=catalogue,
        notes=(
            *notes,
            *standing_notes(entries),
            *verdicts,
            *_overall(together, rows, len(begun), catalogue[HEADLINE].title),
        ),
        ranks=mean_rank(together),
    )


def scores_by_seed(records: Sequence[CellRecord], score: str, seeds: Sequence[int] | None) -> dict[Hashable, float]:
    """One score of the finished runs of a cell; ``seeds`` None takes every seed."""
    return {
        seed: record.scores[score]
        for seed, record in finished(records).items()
        if score in record.scores and (seeds is None or seed in seeds)
    }


def _mark_best(
    entries: dict[tuple[str, str, str], Entry],
    rows: Sequence[RowHead],
    columns: Sequence[ColumnHead],
    scores: Sequence[Score],
    runs: Runs,
    seeds: Sequence[int] | None,
) -> list[str]:
    """Set ``bold`` where the best row beats every other one of its block; return the sentences for the notes."""
    reasons: dict[tuple[str, str], list[str]] = {}
    has_headline = any(score.key == HEADLINE for score in scores)
    for column in columns:
        for block in dict.fromkeys(row.block for row in rows):
            members = [row.key for row in rows if row.block == block]
            for score in scores:
                if score.direction == "none":
                    continue
                table = {key: scores_by_seed(runs.get((key, column.key), ()), score.key, seeds) for key in members}
                result = compare_with_best(table, higher_is_better=score.direction == "higher")
                if result is None:
                    continue
                if result.decided:
                    place = (result.best, column.key, score.key)
                    entries[place] = replace(entries[place], bold=True)
                elif score.key == HEADLINE or not has_headline:
                    where = column.title or block
                    reasons.setdefault((score.title, _without_names(result.reason)), []).append(where)
    sentences = []
    for (title, reason), places in reasons.items():
        named = ", ".join(dict.fromkeys(filter(None, places))) or "these rows"
        sentences.append(f"No bold in {title} for {named}: {reason}.")
    if any(entry.bold for entry in entries.values()):
        sentences.insert(0, "Bold: better than every other row of its column (paired sign-flip test, Holm, 5 %).")
    return sentences


def _without_names(reason: str) -> str:
    """One sentence for all columns that fail for the same reason."""
    if "not distinguishable" in reason:
        return "the best mean is not distinguishable from others"
    return "the row with the best mean is behind another in the runs they share" if "behind" in reason else reason


def _over_columns(
    rows: Sequence[RowHead], columns: Sequence[ColumnHead], runs: Runs, seeds: Sequence[int] | None
) -> dict[str, dict[Hashable, float]]:
    """Headline of each row that has any run, by (column, seed); empty where rows do not all compete."""
    if len({row.block for row in rows}) > 1:
        return {}
    table: dict[str, dict[Hashable, float]] = {}
    for row in rows:
        found: dict[Hashable, float] = {
            (column.key, seed): value
            for column in columns
            for seed, value in scores_by_seed(runs.get((row.key, column.key), ()), HEADLINE, seeds).items()
        }
        if found:
            table[row.key] = found
    return table if len(table) > 1 else {}


def _overall(
    table: Mapping[str, Mapping[Hashable, float]], rows: Sequence[RowHead], columns: int, headline: str
) -> list[str]:
    """The verdict over all datasets together (where there are several), and the mean ranks, as sentences."""
    titles = _short_titles(rows)
    named = {titles[key]: scores for key, scores in table.items()}
    sentences = []
    result = compare_with_best(named) if columns > 1 else None
    if result:
        sentences.append(f"Over all (dataset, seed) pairs, by {headline}: {result.reason}.")
    ranks = sorted(mean_rank(named).items(), key=lambda item: item[1])
    shared = len(set.intersection(*(set(scores) for scores in named.values()))) if named else 0
    if shared > 1:  # ranks in a single seed are not means
        over = f"{shared} (dataset, seed) pairs that all these rows share"
        sentences.append(f"Mean rank over the {over}: " + ", ".join(f"{n} {rank:.2f}" for n, rank in ranks) + ".")
    return sentences


def _short_titles(rows: Sequence[RowHead]) -> dict[str, str]:
    """Rows by those of their labels that differ between rows: what all share does not distinguish rows."""
    varying = [i for i, values in enumerate(zip(*(row.labels for row in rows), strict=True)) if len(set(values)) > 1]
    return {row.key: " ".join(filter(None, [*(row.labels[i] for i in varying), row.remark])) for row in rows}


def standing_notes(entries: Mapping[tuple[str, str, str], Entry]) -> list[str]:
    """What the marks in the cells mean, and how many runs failed."""
    notes = []
    shown = [entry for entry in entries.values() if entry.n]
    if any(entry.missing for entry in shown):
        seeds = sorted({seed for entry in shown for seed in entry.missing})
        notes.append(f"† fewer seeds than planned; missing somewhere: {', '.join(map(str, seeds))}.")
    if any(entry.interval_kind == "bootstrap" for entry in shown):
        notes.append("‡ one run: the interval is a bootstrap over images (groups kept together), not over seeds.")
    failed = sum({(row, column): entry.failed for (row, column, _), entry in entries.items()}.values())
    if failed:
        notes.append(f"{failed} failed run(s) are not in the means; 'gcdbench status' lists them.")
    return notes
