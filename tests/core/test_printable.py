"""Texts from elsewhere stay texts, on a terminal and in a spreadsheet."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gcdbench.cli
from gcdbench.core.printable import one_line, printable, spreadsheet_text


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    shown = printable(text)
    assert not [c for c in shown if unicodedata.category(c) == "Cc" and c not in "\n\t"]
    assert not set(shown) & set("\u202e\u2066\u2028")
    assert len(one_line(text).splitlines()) <= 1


@given(st.text(st.characters(codec="latin-1", categories=("L", "N", "P", "S")), max_size=30))
def test_ordinary_text_stays_what_it_is(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-cmd|x", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_formula_begins_a_cell(text: str) -> None:
    assert spreadsheet_text(text)[0] == "'"


@pytest.mark.parametrize("text", ["-0.5", "+3", "a=b", "/data/images/-1.png", "", "Größe"])
def test_numbers_and_paths_stay(text: str) -> None:
    assert spreadsheet_text(text) == text


def test_commands_speak_in_one_way_only() -> None:
    """click.echo is used where a text is made printable, and for the table that brings colours of its own."""
    found = {
        file.name: len(re.findall(r"\bclick\.s?echo\(", file.read_text()))
        for file in Path(gcdbench.cli.__file__).parent.glob("*.py")
    }
    assert {name: count for name, count in found.items() if count} == {"echo.py": 2, "table.py": 1}
