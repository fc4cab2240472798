"""TOML that somebody else wrote: plain values, or a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcdbench.core.toml_files import DEEPEST, LARGEST, parse_toml, read_toml


def test_plain_tables_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(
        f"a = {LARGEST}\r\nb = {-LARGEST - 1}\r\n[c]\r\nd = ['é', 1.5, true]\r\n".encode()
    )
    assert read_toml(tmp_path / "a.toml") == {"a": LARGEST, "b": -LARGEST - 1, "c": {"d": ["é", 1.5, True]}}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a = 0x" + b"f" * 5000, "64 bits"),
        (f"a = [{LARGEST + 1}]".encode(), "64 bits"),
        (b"a = " + b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1), "nested too deeply"),
        (b"a = " + b"[" * 50_000, "nested too deeply"),
        (b"a = '\xff'", "byte 5 is not UTF-8"),
        (b"a = ", "Invalid value"),
    ],
    ids=["unprintable", "65 bits", "deep", "far too deep", "no text", "no TOML"],
)
def test_what_is_not_plain_is_refused_with_its_reason(content: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_toml(content)


def test_lists_as_deep_as_allowed_are_read() -> None:
    assert parse_toml(b"a = " + b"[" * DEEPEST + b"]" * DEEPEST)
