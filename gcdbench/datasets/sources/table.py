"""Tables as people have them: comma, semicolon or tab, with or without a byte order mark, any capitalisation."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gcdbench.core.errors import DataError
from gcdbench.core.regular_files import read_regular

DELIMITERS = ",;\t"


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column that is looked for: by its name, or by one of its other names where no column has the first."""

    name: str
    others: tuple[str, ...] = ()
    required: bool = True


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of a table, each with its line number. Cells are stripped and named by the columns that were looked for."""

    rows: tuple[tuple[int, dict[str, str]], ...]
    header: tuple[str, ...]


def read_table(file: Path, columns: Sequence[Column], *, chosen: Mapping[str, str] | None = None) -> Table:
    """Read a table whose first line names its columns.

    ``chosen`` says which column is meant (name -> header); None where the user has no way to say so.
    """
    text = _decoded(file)
    delimiters = DELIMITERS
    first, _, rest = text.partition("\n")
    if declared := re.fullmatch(r"sep=(.)", first.strip(), flags=re.IGNORECASE):
        delimiters, text = declared[1], rest
    skipped = len(delimiters) == 1
    try:
        headers = {mark: next(csv.reader(io.StringIO(text), delimiter=mark), []) for mark in delimiters}
        # The mark under which the columns are there; where none is right, the one that finds most to complain about.
        best = max(headers, key=lambda mark: (_hits(headers[mark], columns, chosen or {}), len(headers[mark])))
        header = [name.strip() for name in headers[best]]
        where = _positions(file, header, columns, chosen)
        reader = csv.reader(io.StringIO(text), delimiter=best)
        next(reader, None)
        rows = [
            (line, {name: _cell(cells, position) for name, position in where.items()})
            for cells, line in ((cells, reader.line_num + skipped) for cells in reader)
            if any(cell.strip() for cell in cells) and _fits(file, line, cells, header)
        ]
    except csv.Error as error:
        raise DataError(f"{file} is not a table: {error}.") from None
    return Table(rows=tuple(rows), header=tuple(header))


def _decoded(file: Path) -> str:
    try:
        data = read_regular(file)
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}.") from None
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{file} is not text in UTF-8 or UTF-16: {error.reason} at byte {error.start:,}.",
            hint="Save it again as 'CSV UTF-8' in your spreadsheet.",
        ) from None
    if "\0" in text:
        raise DataError(f"{file} is not a table: it holds characters that no text file has.")
    return text


def _plain(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().casefold())


def _candidates(header: Sequence[str], column: Column) -> list[int]:
    """Positions that may be meant: the column's own name alone where it occurs, else every other name of it."""
    plain = [_plain(name) for name in header]
    own = [position for position, name in enumerate(plain) if name == _plain(column.name)]
    return own or [position for position, name in enumerate(plain) if name in map(_plain, column.others)]


def _hits(header: Sequence[str], columns: Sequence[Column], chosen: Mapping[str, str]) -> int:
    plain = {_plain(name) for name in header}
    return sum(
        _plain(chosen[column.name]) in plain if column.name in chosen else bool(_candidates(header, column))
        for column in columns
        if column.required
    )


def _positions(
    file: Path, header: Sequence[str], columns: Sequence[Column], chosen: Mapping[str, str] | None
) -> dict[str, int]:
    found: dict[str, int] = {}
    for column in columns:
        say = "" if chosen is None else f", or say which one it is: --dataset-set {column.name}=COLUMN"
        chosen = chosen or {}
        wanted = Column(name=chosen[column.name]) if column.name in chosen else column
        positions = _candidates(header, wanted)
        names = ", ".join(header) or "nothing"
        if not positions and wanted.required and (column.required or column.name in chosen):
            called = f"'{wanted.name}'" + (f" (or {', '.join(wanted.others)})" if wanted.others else "")
            raise DataError(
                f"{file} has no column {called}: its first line names {names}.",
                hint=f"Name the column in the first line{say}.",
            )
        if len(positions) > 1:
            same = " and ".join(f"'{header[position]}'" for position in positions)
            raise DataError(
                f"{file} has several columns that may be the {column.name}: {same}.",
                hint=f"Give the others another name{say}.",
            )
        if positions:
            found[column.name] = positions[0]
    return found


def _fits(file: Path, line: int, cells: Sequence[str], header: Sequence[str]) -> bool:
    """True; a row with more cells than columns is refused, since its cells may have shifted."""
    if any(cell.strip() for cell in cells[len(header) :]):
        raise DataError(
            f"{file}, line {line}, has {len(cells)} cells under {len(header)} columns.",
            hint='A cell that holds the separator must be written in quotes: "a,b.png".',
        )
    return True


def _cell(cells: Sequence[str], position: int) -> str:
    return cells[position].strip() if position < len(cells) else ""
