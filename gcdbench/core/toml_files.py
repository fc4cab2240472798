"""TOML that somebody wrote: a table of plain values, or an error with its reason, whatever the bytes are."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from gcdbench.core.regular_files import read_regular

DEEPEST = 32
"""Tables and lists inside one another; what is deeper was not written by hand."""
LARGEST = 2**63 - 1
"""Whole numbers have 64 bits, as TOML asks for. Python cannot even print the largest that it reads."""


def read_toml(path: str | Path) -> dict[str, Any]:
    """The table in a file; OSError where it cannot be read, ValueError where it is not sound."""
    return parse_toml(read_regular(path))


def parse_toml(content: bytes) -> dict[str, Any]:
    """The table that ``content`` describes; ValueError, with a reason that ends a sentence, where it is not sound."""
    try:
        table = tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None
    except RecursionError:
        raise ValueError("its tables and lists are nested too deeply") from None
    _require_plain(table)
    return table


def _require_plain(table: dict[str, Any]) -> None:
    values: list[tuple[Any, int]] = [(table, 0)]
    while values:
        value, depth = values.pop()
        if depth > DEEPEST:
            raise ValueError("its tables and lists are nested too deeply")
        if isinstance(value, int) and not -LARGEST - 1 <= value <= LARGEST:
            raise ValueError("a whole number in it has more than 64 bits")
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        values += [(item, depth + 1) for item in inner]
