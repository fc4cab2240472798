"""What a table says, before any format: rows, columns, scores, and one entry for each combination."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gcdbench.metrics.score import ScoreCatalogue
from gcdbench.reporting.published.reported import Rounded


@dataclass(frozen=True, kw_only=True)
class RowHead:
    """One line of a table: its key, its label columns, and the block of rows it competes with for bold.

    remark: settings that tell it from a row with the same labels; it stands after the numbers.
    """

    key: str
    labels: tuple[str, ...]
    block: str = ""
    remark: str = ""


@dataclass(frozen=True, kw_only=True)
class ColumnHead:
    """One group of columns, for example a dataset.

    left_out: finished runs that are not shown, because they have other images or another split than most.
    """

    key: str
    title: str
    stand_in_for: tuple[str, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One score of one row in one column. ``n`` = 0 means: not run.

    missing: planned seeds that have no finished run; interval_kind: ``"t"`` over runs, ``"bootstrap"`` over images.
    p, above: of a paired difference only: the test's p and the number of shared runs in which it is positive.
    """

    n: int = 0
    mean: float | None = None
    sd: float | None = None
    low: float | None = None
    high: float | None = None
    interval_kind: str = ""
    bold: bool = False
    missing: tuple[int, ...] = ()
    failed: int = 0
    reported: Rounded | None = None
    runs: tuple[str, ...] = ()
    p: float | None = None
    above: int | None = None

    @property
    def difference(self) -> float | None:
        """Measured minus reported."""
        return None if self.mean is None or self.reported is None else self.mean - self.reported.value


@dataclass(frozen=True, kw_only=True)
class ResultTable:
    """A complete table; entries are keyed by (row key, column key, score).

    catalogue: how each score is titled and written.
    reference: title of the row that was subtracted from every entry, in a table of paired differences.
    """

    name: str
    title: str
    caption: str
    label_titles: tuple[str, ...]
    rows: tuple[RowHead, ...]
    columns: tuple[ColumnHead, ...]
    scores: tuple[str, ...]
    entries: Mapping[tuple[str, str, str], Entry]
    catalogue: ScoreCatalogue
    notes: tuple[str, ...] = ()
    ranks: Mapping[str, float] = field(default_factory=dict)
    reference: str = ""

    def entry(self, row: str, column: str, score: str) -> Entry:
        """One entry, an empty one where nothing is known."""
        return self.entries.get((row, column, score), Entry())

    @property
    def has_remarks(self) -> bool:
        """Whether any row needs its settings to be distinguished from another."""
        return any(row.remark for row in self.rows)

    @property
    def has_reported(self) -> bool:
        """Whether any published number is shown next to the measured ones."""
        return any(entry.reported is not None for entry in self.entries.values())
