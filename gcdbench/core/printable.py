"""Text that somebody else wrote, made safe to show: on a terminal, on one line, in a cell of a spreadsheet."""

from __future__ import annotations

import re
import unicodedata

_SUSPECT = re.compile(r"[^\x20-\x7e\n\t]")
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the direction of writing around: what is shown would not be what is there."""
_HIDDEN = frozenset({"Cc", "Cs", "Zl", "Zp"})
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def printable(text: str) -> str:
    """Several lines for a terminal: control characters and escape sequences are shown as text such as ``\\x1b``.

    >>> printable("\\x1b[31mred")
    '\\\\x1b[31mred'
    """
    return _SUSPECT.sub(_shown, text)


def one_line(text: str) -> str:
    """The same for what must stay on its line: a name, a cell, a message in a list."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def spreadsheet_text(text: str) -> str:
    """A text cell that no spreadsheet takes for a formula; a number that was written as text stays one.

    >>> spreadsheet_text("=1+1"), spreadsheet_text("-0.5")
    ("'=1+1", '-0.5')
    """
    if not text.startswith(_FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return f"'{text}" if text[0] in "\t\r" else text


def _shown(found: re.Match[str]) -> str:
    character = found[0]
    if character not in _BIDI and unicodedata.category(character) not in _HIDDEN:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
