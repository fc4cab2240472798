"""The tables in the repository follow, byte for byte, from the runs in the repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

STUDY = Path(__file__).resolve().parents[2] / "benchmarks" / "medxplore"
TABLES = sorted((STUDY / "tables").glob("*.md"))

pytest.importorskip("gcdbench_medxplore")


def test_there_are_tables_to_check() -> None:
    assert TABLES


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.stem)
def test_a_committed_table_follows_from_the_committed_runs(cli: Callable[..., Result], table: Path) -> None:
    """``SUITE.md`` is the suite's table, ``SUITE.against-ROW.md`` that of the differences to a row."""
    suite, _, row = table.stem.partition(".against-")
    against = ["--against", row] if row else []
    made = cli(
        "table", f"medxplore/{suite}", "--preset", "laptop", *against, "--runs", STUDY / "runs", "--check", table
    )
    assert made.exit_code == 0, made.output
