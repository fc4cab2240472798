"""Published numbers as they were printed: a value and the rounding that hides behind it."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from gcdbench.core.errors import DataError
from gcdbench.metrics.error_terms import TERMS

ACCURACIES = ("all", "old", "new")
KEYS = ("table", "method", "variant", "dataset", "source")
BLANK = {"", "-", "–", "—", "n/a", "na", "nan", "none"}
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


@dataclass(frozen=True, kw_only=True)
class Rounded:
    """A printed number; the true one lies within ``half`` of it, half a unit of the last printed digit."""

    value: float
    half: float

    def __str__(self) -> str:
        decimals = max(0, round(-math.log10(2 * self.half)))
        return f"{self.value:.{decimals}f}"

    @property
    def low(self) -> float:
        """Smallest number that is printed like this."""
        return self.value - self.half

    @property
    def high(self) -> float:
        """Largest number that is printed like this."""
        return self.value + self.half


@dataclass(frozen=True, kw_only=True)
class ReportedRow:
    """One line of a published table. ``scores`` holds what was printed: accuracies, error terms, or both."""

    line: int
    method: str
    dataset: str
    table: str = ""
    variant: str = ""
    source: str = ""
    scores: Mapping[str, Rounded] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Method with its variant."""
        return f"{self.method} {self.variant}".strip()

    def has(self, keys: tuple[str, ...]) -> bool:
        """Whether all of these were printed."""
        return all(key in self.scores for key in keys)


def parse_printed(text: str) -> Rounded | None:
    """``"72.8"``, ``"72.8 ± 0.4"``, ``"**72.8**"`` or ``"72.8%"``; None for a blank or a dash."""
    bare = text.strip()
    if bare.lower() in BLANK:
        return None
    bare = re.split(r"±|\+/-|\\pm|\(", bare)[0]
    bare = re.sub(r"\\textbf|\\underline|[*$%{}\\_\s]", "", bare)
    if not _NUMBER.fullmatch(bare):
        raise ValueError(f"'{text}' is not a number")
    number = Decimal(bare)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return Rounded(value=float(number), half=0.5 * 10.0**exponent)


def read_reported(path: Path) -> list[ReportedRow]:
    """Rows of a CSV with ``method`` and ``dataset`` and at least the accuracies or the four error terms.

    Accuracies in 0..1 throughout are read as fractions and turned into percent.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"'{path}' cannot be read: {error}.") from error
    lines = text.splitlines()
    if not lines:
        raise DataError(f"'{path}' is empty.", hint="Its first line must name the columns: method,dataset,all,old,new.")
    delimiter = max(",;\t", key=lines[0].count)
    reader = csv.DictReader(lines, delimiter=delimiter)
    columns = [(name or "").strip().lower() for name in reader.fieldnames or ()]
    reader.fieldnames = columns
    _check_columns(path, columns)
    wanted = [key for key in (*ACCURACIES, *TERMS) if key in columns]
    rows = []
    for record in reader:
        scores = {}
        for key in wanted:
            try:
                printed = parse_printed(record.get(key) or "")
            except ValueError as error:
                raise DataError(f"'{path}', line {reader.line_num}, column '{key}': {error}.") from None
            if printed is not None:
                scores[key] = printed
        texts = {key: (record.get(key) or "").strip() for key in KEYS}
        if not scores and not any(texts.values()):
            continue
        rows.append(ReportedRow(line=reader.line_num, scores=scores, **texts))
    if not rows:
        raise DataError(f"'{path}' has a header but no rows.")
    return _as_percent(rows)


def _check_columns(path: Path, columns: list[str]) -> None:
    missing = [key for key in ("method", "dataset") if key not in columns]
    if not missing and not set(ACCURACIES) <= set(columns) and not set(TERMS) <= set(columns):
        missing = [key for key in ACCURACIES if key not in columns]
    if missing:
        raise DataError(
            f"'{path}' has no column '{missing[0]}'.",
            hint="Needed: method, dataset, and all, old, new (or four error terms); table and variant are optional.",
        )


def _as_percent(rows: list[ReportedRow]) -> list[ReportedRow]:
    values = [printed.value for row in rows for printed in row.scores.values()]
    if not values or max(values) > 1.0:
        return rows
    return [
        ReportedRow(
            line=row.line,
            method=row.method,
            dataset=row.dataset,
            table=row.table,
            variant=row.variant,
            source=row.source,
            scores={key: Rounded(value=100 * r.value, half=100 * r.half) for key, r in row.scores.items()},
        )
        for row in rows
    ]
