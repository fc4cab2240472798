"""JSON that somebody else may have written, or a disk may have damaged: plain values of credible size, or an error.

Everything a run directory holds as JSON is read through here. Whatever is wrong with a file, the reader learns it as
one :class:`StoreError` that names the file, so that one bad run never takes a whole store down.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gcdbench.core import regular_files
from gcdbench.core.errors import StoreError
from gcdbench.core.files import write_json
from gcdbench.core.identity import digest

MOST_BYTES = 256 * 2**20
"""Largest file that is read: the confusion matrix of some thousand classes has about this size."""
MOST_DEPTH = 24
MOST_DIGITS = 18
"""Digits of a whole number; longer ones may not fit into 64 bits."""
SEAL = "sha256"
"""Key of the digest that a sealed table carries of its other keys."""


class NotJSON(StoreError):
    """Text that is not JSON at all, for example the half of a line."""


@contextmanager
def open_regular(path: Path | str) -> Iterator[io.BufferedReader]:
    """A regular file to read from; whatever else has its name, and whatever goes wrong, is a StoreError."""
    try:
        with regular_files.open_regular(path) as file:
            yield file
    except FileNotFoundError:
        raise StoreError(f"'{path}' does not exist.") from None
    except OSError as error:
        raise StoreError(f"'{path}' cannot be read: {error.strerror or error}.") from error


def read_bytes(path: Path | str, most: int = MOST_BYTES) -> bytes:
    """The content of a regular file of at most ``most`` bytes."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        content = b"" if size > most else file.read(most + 1)
    if max(size, len(content)) > most:
        raise StoreError(f"'{path}' is too large: {size:,} bytes, at most {most:,} are read.")
    return content


def parse_table(content: bytes, where: str) -> dict[str, Any]:
    """A JSON object of plain values: no NaN, no number beyond 64 bits, no deep nesting, no half of a character."""
    try:
        text = content.decode()
        value = json.loads(text, parse_constant=_no_constant, parse_int=_whole, parse_float=_finite)
        _require_shallow(value)
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair cannot be printed or hashed
    except UnicodeError:
        raise StoreError(f"'{where}' cannot be read: it is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise NotJSON(f"'{where}' cannot be read: {error}.") from None
    except (ValueError, RecursionError) as error:
        raise StoreError(f"'{where}' cannot be read: {error}.") from None
    if not isinstance(value, dict):
        raise StoreError(f"'{where}' is not a table but {kind_of(value)}.")
    return value


def read_table(path: Path) -> dict[str, Any]:
    """:func:`parse_table` of a file."""
    return parse_table(read_bytes(path), str(path))


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not a number")


def _whole(text: str) -> int:
    if len(text.lstrip("-")) > MOST_DIGITS:
        raise ValueError(f"a whole number has {len(text)} digits")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is not a finite number")
    return number


def _require_shallow(value: object, depth: int = 0) -> None:
    if depth > MOST_DEPTH:
        raise ValueError(f"it is nested more than {MOST_DEPTH} levels deep")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inner:
        if type(item) in (dict, list):
            _require_shallow(item, depth + 1)


# Seals ---------------------------------------------------------------------------------------------------------------


def write_sealed(path: Path, table: Mapping[str, Any]) -> None:
    """Write a table with the digest of its own content, so that a reader notices a changed digit."""
    write_json(path, {**table, SEAL: digest(table)})


def unsealed(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A table without its seal, which must be there and right."""
    content = {key: value for key, value in table.items() if key != SEAL}
    if table.get(SEAL) != digest(content):
        raise StoreError(f"'{where}' is damaged: its content does not match the sha256 that was stored with it.")
    return content


# Fields --------------------------------------------------------------------------------------------------------------


def kind_of(value: object) -> str:
    """What a JSON value is, in a word for messages; the value itself may be anything and is not shown."""
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a string", list: "a list"}
    return "nothing" if value is None else names.get(type(value), "a table")


class Fields:
    """Typed access to a table that was read; every complaint names the file and the key.

    A key without a default must be there.
    """

    def __init__(self, table: Mapping[str, Any], where: str) -> None:
        self.table = table
        self.where = where

    def refuse(self, what: str) -> StoreError:
        """The error for something that is wrong in this table."""
        return StoreError(f"'{self.where}' cannot be used: {what}.")

    def _get(self, key: str, kinds: tuple[type, ...], name: str, default: Any) -> Any:
        value = self.table.get(key, default)
        if value is ...:
            raise self.refuse(f"'{key}' is missing")
        # Exact types: true is not a number, although Python says so.
        if type(value) not in kinds and not (value is default and key not in self.table):
            raise self.refuse(f"'{key}' must be {name}, not {kind_of(value)}")
        return value

    def text(self, key: str, default: Any = ...) -> str:
        """A text."""
        return str(self._get(key, (str,), "a string", default))

    def optional_text(self, key: str) -> str | None:
        """A text, or None where it is null or missing."""
        return None if self.table.get(key) is None else self.text(key)

    def whole(self, key: str, default: Any = ..., *, least: int | None = None) -> int:
        """A whole number."""
        value: int = self._get(key, (int,), "a whole number", default)
        if least is not None and value < least:
            raise self.refuse(f"'{key}' must be at least {least}")
        return value

    def number(self, key: str, default: Any = ...) -> float:
        """A finite number."""
        return float(self._get(key, (int, float), "a number", default))

    def flag(self, key: str, default: Any = ...) -> bool:
        """True or false."""
        return bool(self._get(key, (bool,), "true or false", default))

    def inner(self, key: str, default: Any = ...) -> Fields:
        """A table."""
        return Fields(self._get(key, (dict,), "a table", default), f"{self.where}: {key}")

    def texts(self, key: str, default: Any = ...) -> tuple[str, ...]:
        """A list of strings."""
        return self._items(key, (str,), "a list of strings", default)

    def text_table(self, key: str, default: Any = ...) -> dict[str, str]:
        """A table of strings."""
        return self._values(key, (str,), "a table of strings", default)

    def number_table(self, key: str, default: Any = ...) -> dict[str, float]:
        """A table of finite numbers."""
        return {k: float(v) for k, v in self._values(key, (int, float), "a table of numbers", default).items()}

    def whole_table(self, key: str, default: Any = ...) -> dict[str, int]:
        """A table of whole numbers."""
        return self._values(key, (int,), "a table of whole numbers", default)

    def inner_tables(self, key: str, default: Any = ...) -> dict[str, Fields]:
        """A table of tables."""
        found = self._values(key, (dict,), "a table of tables", default)
        return {name: Fields(value, f"{self.where}: {key}.{name}") for name, value in found.items()}

    def whole_rows(self, key: str, default: Any = ...) -> tuple[tuple[int, ...], ...]:
        """A list of equally long lists of whole numbers."""
        rows = self._items(key, (list,), "a list of lists", default)
        if len({len(row) for row in rows}) > 1 or not all(type(item) is int for row in rows for item in row):
            raise self.refuse(f"'{key}' must be equally long rows of whole numbers")
        return tuple(tuple(row) for row in rows)

    def _items(self, key: str, kinds: tuple[type, ...], name: str, default: Any) -> tuple[Any, ...]:
        value = self._get(key, (list,), name, default)
        if not all(type(item) in kinds for item in value):
            raise self.refuse(f"'{key}' must be {name}")
        return tuple(value)

    def _values(self, key: str, kinds: tuple[type, ...], name: str, default: Any) -> dict[str, Any]:
        value = self._get(key, (dict,), name, default)
        if not all(type(item) in kinds for item in value.values()):
            raise self.refuse(f"'{key}' must be {name}")
        return dict(value)
