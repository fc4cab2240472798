"""A table laid out as header and body cells, from which every text format is written.

``long``: one section per column (dataset), one line per row, with interval, reported value and difference next to each
score. ``wide``: the shape of a printed paper, columns × scores, with the reported numbers on a second line.
``tall``: one line per score and row, which stays narrow however many scores there are.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from gcdbench.core.printable import one_line
from gcdbench.metrics.score import Score
from gcdbench.reporting.spent import SPENT
from gcdbench.reporting.tables.model import Entry, ResultTable, RowHead

Layout = Literal["auto", "long", "wide", "tall"]
MOST_SIDE_BY_SIDE = 3
"""Scores that ``long`` can hold side by side and still be read on paper; ``auto`` lays out more of them ``tall``."""
NOT_RUN = "—"
REMARK = "settings"
"""Title of the last column, which is there where settings tell rows apart."""
UNDESCRIBED = Score(key="score")
"""Written with one decimal."""


@dataclass(frozen=True, kw_only=True)
class GridCell:
    """A body cell: ``value`` is what it is sorted by."""

    text: str
    value: float | None = None
    bold: bool = False
    faint: bool = False
    is_label: bool = False


@dataclass(frozen=True, kw_only=True)
class GridRow:
    """A line of the body; a ``section`` row is a heading over all columns."""

    cells: tuple[GridCell, ...] = ()
    section: str = ""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """header: lines of (text, span); label_columns: how many columns on the left hold text.

    has_remarks: the last column holds text as well.
    """

    title: str
    caption: str
    header: tuple[tuple[tuple[str, int], ...], ...]
    rows: tuple[GridRow, ...]
    label_columns: int
    notes: tuple[str, ...] = field(default=())
    has_remarks: bool = False

    def is_text(self, column: int) -> bool:
        """Whether a column holds text and is aligned like one."""
        return column < self.label_columns or (self.has_remarks and column == self.width - 1)

    @property
    def width(self) -> int:
        """Number of columns."""
        return sum(span for _, span in self.header[-1])


def lay_out(table: ResultTable, layout: Layout = "auto") -> Grid:
    """The grid of a table."""
    if layout == "auto":
        layout = "tall" if sum(score not in SPENT for score in table.scores) > MOST_SIDE_BY_SIDE else "long"
    once = _say_once(table)
    return _on_lines(_with_remarks({"long": _long, "wide": _wide, "tall": _tall}[layout](once), once))


def _with_remarks(grid: Grid, table: ResultTable) -> Grid:
    """The grid with the rows' settings in a last column, where they tell rows apart."""
    if not table.has_remarks:
        return grid
    texts = {row.labels: [r.remark for r in table.rows if r.labels == row.labels] for row in table.rows}
    seen: dict[tuple[str, tuple[str, ...]], int] = {}
    section, rows = "", []
    for row in grid.rows:
        if row.section:
            section = row.section
            rows.append(row)
            continue
        labels = tuple(cell.text for cell in row.cells[: grid.label_columns])
        found = texts.get(labels)
        if found is None:  # the line of published numbers below a row of ``wide``
            remark = ""
        else:
            position = seen.get((section, labels), 0)
            seen[section, labels] = position + 1
            remark = found[position]
        rows.append(GridRow(cells=(*row.cells, GridCell(text=remark, is_label=True, faint=True))))
    upper, lower = grid.header
    last_upper = (*upper[:-1], (upper[-1][0], upper[-1][1] + 1)) if len(upper) == 1 else (*upper, ("", 1))
    return replace(grid, header=(last_upper, (*lower, (REMARK, 1))), rows=tuple(rows), has_remarks=True)


def _on_lines(grid: Grid) -> Grid:
    """Every text on its own line and without control characters: names in a table may come from anybody's run."""
    return replace(
        grid,
        title=one_line(grid.title),
        caption=one_line(grid.caption),
        header=tuple(tuple((one_line(text), span) for text, span in line) for line in grid.header),
        rows=tuple(
            GridRow(
                cells=tuple(replace(cell, text=one_line(cell.text)) if cell.is_label else cell for cell in row.cells),
                section=one_line(row.section),
            )
            for row in grid.rows
        ),
        notes=tuple(map(one_line, grid.notes)),
    )


def _say_once(table: ResultTable) -> ResultTable:
    """Labels after the first two that are the same in every row move into the caption; data formats keep them."""
    same = [i for i in range(2, len(table.label_titles)) if len({row.labels[i] for row in table.rows}) == 1]
    if not same or len(table.rows) < 2:
        return table
    said = ", ".join(f"{table.label_titles[i]} {table.rows[0].labels[i]}" for i in same)
    kept = [i for i in range(len(table.label_titles)) if i not in same]
    return replace(
        table,
        caption=f"{table.caption} All rows: {said}.",
        label_titles=tuple(table.label_titles[i] for i in kept),
        rows=tuple(replace(row, labels=tuple(row.labels[i] for i in kept)) for row in table.rows),
    )


def mean_text(entry: Entry, score: Score = UNDESCRIBED, *, signed: bool = False) -> str:
    """``72.8 ± 0.4`` with the mark of an incomplete cell; a difference always has its sign."""
    if entry.mean is None:
        return NOT_RUN
    spread = "" if entry.sd is None else f" ± {score.written(entry.sd)}"
    return f"{score.written(entry.mean, signed=signed)}{spread}{'†' if entry.missing else ''}"


def interval_text(entry: Entry, score: Score = UNDESCRIBED, *, signed: bool = False) -> str:
    """``[71.9, 73.7]``, marked when it is over images and not over seeds."""
    if entry.low is None or entry.high is None:
        return NOT_RUN
    low, high = (score.written(value, signed=signed) for value in (entry.low, entry.high))
    return f"[{low}, {high}]{'‡' if entry.interval_kind == 'bootstrap' else ''}"


def p_text(p: float | None) -> str:
    """A p value; one that would be printed as zero is shown as an upper bound."""
    if p is None:
        return NOT_RUN
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def difference_text(entry: Entry, score: Score = UNDESCRIBED) -> str:
    """Measured minus reported, always with a sign."""
    return NOT_RUN if entry.difference is None else score.written(entry.difference, signed=True)


def reported_text(entry: Entry, score: Score = UNDESCRIBED) -> str:
    """The published value, and the difference to it in brackets where there is a measured one."""
    if entry.reported is None:
        return NOT_RUN
    return f"{entry.reported} ({difference_text(entry, score)})" if entry.n else str(entry.reported)


def _labels(row: RowHead) -> list[GridCell]:
    return [GridCell(text=label, is_label=True) for label in row.labels]


def _count(entry: Entry) -> GridCell:
    return GridCell(text=str(entry.n) if entry.n else NOT_RUN, value=float(entry.n))


FACTS = ("mean ± sd", "95 % interval", "reported", "Δ")
PAIRED_FACTS = ("difference ± sd", "95 % interval", "p", "above")


def _fact_titles(table: ResultTable) -> tuple[str, ...]:
    """What stands below each score."""
    if table.reference:
        return PAIRED_FACTS
    return FACTS if table.has_reported else FACTS[:2]


def _facts(table: ResultTable, entry: Entry, score: Score) -> tuple[GridCell, ...]:
    """The cells below FACTS or PAIRED_FACTS."""
    if table.reference:
        return (
            GridCell(text=mean_text(entry, score, signed=True), value=entry.mean, bold=entry.bold),
            GridCell(text=interval_text(entry, score, signed=True), value=entry.low, faint=True),
            GridCell(text=p_text(entry.p), value=entry.p),
            GridCell(text=NOT_RUN if entry.above is None else f"{entry.above} of {entry.n}", value=entry.above),
        )
    value = entry.reported.value if entry.reported else None
    return (
        GridCell(text=mean_text(entry, score), value=entry.mean, bold=entry.bold),
        GridCell(text=interval_text(entry, score), value=entry.low, faint=True),
        GridCell(text=str(entry.reported or NOT_RUN), value=value, faint=True),
        GridCell(text=difference_text(entry, score), value=entry.difference),
    )


def _long(table: ResultTable) -> Grid:
    # What a run cost has no interval and no published value to be compared with.
    titles = _fact_titles(table)
    widths = {score: 1 if score in SPENT else len(titles) for score in table.scores}
    upper: list[tuple[str, int]] = [("", len(table.label_titles) + 1)]
    lower: list[tuple[str, int]] = [(title, 1) for title in (*table.label_titles, "n")]
    for score in table.scores:
        upper.append((table.catalogue[score].title, widths[score]))
        lower += [(text, 1) for text in titles[: widths[score]]]
    rows: list[GridRow] = []
    for column in table.columns:
        if column.title:
            rows.append(GridRow(section=column.title))
        for row in table.rows:
            counted = table.entry(row.key, column.key, table.scores[0])
            cells = [*_labels(row), _count(counted)]
            for score in table.scores:
                entry = table.entry(row.key, column.key, score)
                first, *others = _facts(table, entry, table.catalogue[score])[: widths[score]]
                if entry.n not in (0, counted.n):  # the time of a resumed run is not known
                    first = replace(first, text=f"{first.text} (n = {entry.n})")
                cells += [first, *others]
            rows.append(GridRow(cells=tuple(cells)))
    return Grid(
        title=table.title,
        caption=table.caption,
        header=(tuple(upper), tuple(lower)),
        rows=tuple(rows),
        label_columns=len(table.label_titles),
        notes=table.notes,
    )


def _tall(table: ResultTable) -> Grid:
    titles = _fact_titles(table)
    header = tuple((title, 1) for title in (*table.label_titles, "n", *titles))
    rows: list[GridRow] = []
    for column in table.columns:
        for score in map(table.catalogue.__getitem__, table.scores):
            rows.append(GridRow(section=": ".join(filter(None, (column.title, score.title)))))
            for row in table.rows:
                entry = table.entry(row.key, column.key, score.key)
                rows.append(GridRow(cells=(*_labels(row), _count(entry), *_facts(table, entry, score)[: len(titles)])))
    return Grid(
        title=table.title,
        caption=table.caption,
        header=((("", len(header)),), header),
        rows=tuple(rows),
        label_columns=len(table.label_titles),
        notes=table.notes,
    )


def _wide(table: ResultTable) -> Grid:
    labels = len(table.label_titles)
    # The paper's shape has no room for costs, unless nothing else is asked for.
    keys = [score for score in table.scores if score not in SPENT] or table.scores
    shown = [table.catalogue[key] for key in keys]
    upper = (("", labels), *((column.title, len(shown)) for column in table.columns))
    lower = (
        *((title, 1) for title in table.label_titles),
        *((score.title, 1) for _ in table.columns for score in shown),
    )
    rows: list[GridRow] = []
    for row in table.rows:
        scores = [score for _ in table.columns for score in shown]
        entries = [table.entry(row.key, column.key, score.key) for column in table.columns for score in shown]
        cells = [
            GridCell(
                text=mean_text(entry, score, signed=bool(table.reference)) + (f" ({entry.n})" if entry.n else ""),
                value=entry.mean,
                bold=entry.bold,
            )
            for entry, score in zip(entries, scores, strict=True)
        ]
        rows.append(GridRow(cells=(*_labels(row), *cells)))
        if any(entry.reported for entry in entries):
            printed = [
                GridCell(text=reported_text(entry, score), faint=True)
                for entry, score in zip(entries, scores, strict=True)
            ]
            blank = [GridCell(text="", is_label=True) for _ in range(labels - 1)]
            rows.append(GridRow(cells=(*blank, GridCell(text="reported (Δ)", is_label=True, faint=True), *printed)))
    return Grid(
        title=table.title,
        caption=table.caption,
        header=(upper, lower),
        rows=tuple(rows),
        label_columns=labels,
        notes=tuple(note for note in table.notes if not note.startswith("‡")),  # no interval, no mark
    )
