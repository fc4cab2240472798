"""What a figure shows, taken from tables and run directories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gcdbench.core.errors import ConfigError
from gcdbench.metrics.error_terms import HEAD_TERMS, TERMS
from gcdbench.reporting.figures.accuracy import Panel, Point, draw_bars, draw_curves
from gcdbench.reporting.figures.errors import ErrorPanel, draw_errors
from gcdbench.reporting.figures.runs import draw_confusion, draw_embedding, draw_training, sample_evenly, tsne
from gcdbench.reporting.figures.style import add_caption
from gcdbench.reporting.suites.model import Suite
from gcdbench.reporting.tables.model import Entry, ResultTable
from gcdbench.runs.attempt import EMBEDDINGS
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.events import EpochEnd
from gcdbench.runs.predictions import load_arrays, load_predictions
from gcdbench.runs.record import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = ("all", "old", "new")
MOST_ERROR_MAPS = 4
"""Maps side by side; more go on further lines, so that a figure is no wider than a page."""


def error_figure(table: ResultTable) -> Figure:
    """Measured maps of every row that has runs; below them those by the head, and the published ones."""
    measured, by_head, published = [], [], []
    for column in table.columns:
        for row in table.rows:
            entries = {name: table.entry(row.key, column.key, name) for name in (*TERMS, *HEAD_TERMS, "all")}
            where = f"{row.labels[0]}, {column.title}"
            every = entries["all"]
            planned = f" of {every.n + len(every.missing)}" if every.missing else ""
            counted = f"n = {every.n}{planned}"
            measured += _measured(f"{where}\nmeasured: All {every.mean or 0.0:.1f}, {counted}", entries, TERMS)
            by_head += _measured(f"{where}\nmeasured, by the head: {counted}", entries, HEAD_TERMS)
            printed = {name: e.reported.value for name in TERMS if (e := entries[name]).reported is not None}
            if len(printed) == len(TERMS):
                published.append(ErrorPanel(title=f"{where}\npublished: All {every.reported}", terms=printed))
    if not measured:
        raise ConfigError(f"No run of suite '{table.name}' has an error decomposition yet.")
    figure = draw_errors([*measured, *by_head, *published], min(MOST_ERROR_MAPS, len(measured)))
    add_caption(figure, table.caption)
    return figure


def _measured(title: str, entries: Mapping[str, Entry], names: Sequence[str]) -> list[ErrorPanel]:
    """One map where all four terms were measured, by whichever way of counting ``names`` has; else none."""
    means = {term: mean for term, name in zip(TERMS, names, strict=True) if (mean := entries[name].mean) is not None}
    spread = {term: sd for term, name in zip(TERMS, names, strict=True) if (sd := entries[name].sd) is not None}
    return [ErrorPanel(title=title, terms=means, spread=spread)] if len(means) == len(TERMS) else []


def _point(entry: Entry, label: str, x: float | None = None) -> Point:
    reported = entry.reported.value if entry.reported else None
    return Point(
        label=label,
        mean=entry.mean,
        low=entry.low,
        high=entry.high,
        x=x,
        reported=reported,
        over_images=entry.interval_kind == "bootstrap",
    )


def _names(table: ResultTable) -> dict[str, str]:
    return {score: table.catalogue[score].title for score in SHOWN}


def bar_figure(table: ResultTable) -> Figure:
    """Bars of every row with runs, one panel per column; columns without a run are named below."""
    panels, empty = [], []
    for column in table.columns:
        rows = [row for row in table.rows if any(table.entry(row.key, column.key, s).mean is not None for s in SHOWN)]
        if rows:
            series = {
                s: [
                    _point(entry, f"{row.labels[0]} ({entry.n})")
                    for row in rows
                    for entry in [table.entry(row.key, column.key, s)]
                ]
                for s in SHOWN
                if s in table.scores
            }
            panels.append(Panel(title=column.title, series=series, names=_names(table)))
        else:
            empty.append(column.title)
    if not panels:
        raise ConfigError(f"There is no run of suite '{table.name}' yet.")
    figure = draw_bars(panels)
    not_run = f" Not run: {', '.join(empty)}." if empty else ""
    add_caption(
        figure,
        f"{table.caption} In brackets: number of seeds. Lines: 95 % interval over seeds; pale, where there is one: "
        f"over the images.{not_run}",
    )
    return figure


def curve_figure(table: ResultTable, suite: Suite) -> Figure:
    """Curves of every setting that a suite sweeps, one panel per setting and column."""
    panels = []
    for column in table.columns:
        for group in dict.fromkeys(row.group for row in suite.rows if row.group):
            rows = [row for row in suite.rows if row.group == group]
            if all(table.entry(row.key, column.key, "all").mean is None for row in rows):
                continue
            series = {
                s: [_point(table.entry(row.key, column.key, s), row.title, row.x) for row in rows]
                for s in SHOWN
                if s in table.scores
            }
            title = column.key if column.stand_in_for else column.title
            panels.append(Panel(title=f"{group} ({title})", series=series, names=_names(table)))
    if not panels:
        raise ConfigError(f"Suite '{suite.name}' has no swept setting with runs.")
    figure = draw_curves(panels)
    add_caption(figure, f"{table.caption} Lines: 95 % interval over seeds; of a single run, over its images.")
    return figure


def _classes(record: Record, count: int) -> list[str]:
    """Names of the classes that were scored, or their numbers where the record does not name as many."""
    known = record.split.classes
    return list(known) if len(known) == count else [str(number) for number in range(count)]


def confusion_figure(directory: RunDirectory, evaluation: str = "transductive") -> Figure:
    """The stored confusion matrix of one run."""
    record = directory.record()
    scored = record.scores.sets.get(evaluation) if record.scores else None
    if scored is None or not scored.confusion:
        raise ConfigError(f"The run '{directory.path.name}' was not scored on '{evaluation}'.")
    matrix = np.asarray(scored.confusion)
    return draw_confusion(matrix, _classes(record, len(matrix)), scored.k_old, record.title)


def training_figure(directories: Sequence[RunDirectory]) -> Figure:
    """Loss terms of trained runs."""
    records = [directory.record() for directory in directories]
    titles = [record.title for record in records]
    # Runs that differ in a setting only have one title.
    names = [
        record.title if titles.count(record.title) == 1 else f"{record.title} ({record.run_id[:8]})"
        for record in records
    ]
    curves = {
        name: [event for event in record.events if isinstance(event, EpochEnd)]
        for name, record in zip(names, records, strict=True)
    }
    curves = {title: events for title, events in curves.items() if events}
    if not curves:
        raise ConfigError("None of these runs was trained: there are no epochs to draw.")
    return draw_training(curves)


def embedding_figure(directory: RunDirectory, evaluation: str = "transductive") -> Figure:
    """t-SNE of one run's stored embedding."""
    record = directory.record()
    file = record.home / EMBEDDINGS / f"{evaluation}.npz"
    if not file.is_file():
        raise ConfigError(
            f"The run '{directory.path.name}' has no stored embedding.",
            hint="Methods that return one store it; an archive carries it only with 'export --embeddings'.",
        )
    scored = load_predictions(record, evaluation)
    known = record.files.get(f"{EMBEDDINGS}/{evaluation}.npz")
    arrays = load_arrays(file, known.sha256 if known else None)
    if not np.array_equal(arrays["ids"], scored.ids):
        raise ConfigError(
            f"The embedding of run '{directory.path.name}' does not belong to the samples that were scored."
        )
    chosen = sample_evenly(len(scored.ids))
    k_old = int(scored.is_old.sum())
    names = _classes(record, len(scored.is_old))
    return draw_embedding(tsne(arrays["embedding"][chosen]), scored.y_true[chosen], names, k_old, record.title)
