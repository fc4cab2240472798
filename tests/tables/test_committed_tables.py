"""The tables in the repository follow from the runs in the repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from gcdbench.store.index import load_runs
from gcdbench.tables.records import cell_records

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
TABLES = sorted((RESULTS / "tables").glob("*.md"))

pytest.importorskip("gcdbench_medxplore")


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.stem)
def test_a_committed_table_follows_from_the_committed_runs(cli: Callable[..., Result], table: Path) -> None:
    made = cli("table", table.stem, "--preset", "laptop", "--runs", RESULTS / "runs", "--check", table)
    assert made.exit_code == 0, made.output


def test_the_readmes_tables_follow_from_the_committed_runs() -> None:
    readme = pytest.importorskip("benchmarks.readme", reason="runs from the repository's root")
    page = (RESULTS.parents[1] / "README.md").read_text(encoding="utf-8")
    records = cell_records(load_runs(RESULTS / "runs"))
    assert len(readme.BLOCK.findall(page)) == 2
    assert readme.fill(page, records) == page
    shown = [record for record in records if readme.is_plain(record)]
    assert readme.fill(page, shown[1:]) != page
