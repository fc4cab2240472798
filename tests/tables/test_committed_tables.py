"""The tables in the repository follow from the runs in the repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
TABLES = sorted((RESULTS / "tables").glob("*.md"))

pytest.importorskip("gcdbench_medxplore")


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.stem)
def test_a_committed_table_follows_from_the_committed_runs(cli: Callable[..., Result], table: Path) -> None:
    made = cli("table", table.stem, "--preset", "laptop", "--runs", RESULTS / "runs", "--check", table)
    assert made.exit_code == 0, made.output
