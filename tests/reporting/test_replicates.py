"""A replicate is a split or a seed of training: what is averaged together, and what never is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from gcdbench.core.errors import ConfigError
from gcdbench.plugins.manager import get_manager
from gcdbench.reporting.records import CellRecord, cell_records
from gcdbench.reporting.replicates import group_replicates
from gcdbench.reporting.suites.model import Suite, request_for
from gcdbench.reporting.suites.planning import plan_suite
from gcdbench.reporting.suites.read import load_suite
from gcdbench.reporting.tables.plain import plain_table
from gcdbench.reporting.tables.suite_table import suite_table
from gcdbench.runs.index import load_runs
from gcdbench.runs.request import Request
from gcdbench.testing.stored import FakeRun, write_fake_run

SUITE = """
title = "One method"
protocol = "half"
{said}

[presets.smoke]
seeds = [0, 1, 2]

[[columns]]
dataset = "phantom"

[[rows]]
method = "kmeans"

[[rows]]
method = "ss-kmeans"
"""


def make_suite(folder: Path, said: str = "") -> Suite:
    file = folder / "one.toml"
    file.write_text(SUITE.format(said=said))
    return load_suite(file, get_manager())


def add(runs: Path, pairs: Iterable[tuple[int, int]], method: str = "kmeans") -> None:
    """Finished runs with these seeds and split seeds."""
    for seed, split in pairs:
        request = Request(
            method=method, dataset="phantom", preset="smoke", seed=seed, overrides={"protocol.split_seed": split}
        )
        accuracy = 0.5 + 0.01 * seed + 0.02 * split
        write_fake_run(runs, FakeRun(request=request, accuracy=accuracy), get_manager())


def stored(runs: Path) -> list[CellRecord]:
    return cell_records(load_runs(runs))


def groups(runs: Path) -> set[frozenset[tuple[int, int]]]:
    found = group_replicates(stored(runs)).values()
    return {frozenset((r.seed, int(r.identity["protocol"]["split_seed"])) for r in members) for members in found}


def test_a_suite_draws_a_split_for_each_seed_unless_it_says_otherwise(tmp_path: Path) -> None:
    def asked(suite: Suite) -> list[object]:
        row, column, preset = suite.rows[0], suite.columns[0], suite.preset("smoke")
        return [request_for(suite, row, column, preset, seed).overrides.get("protocol.split_seed") for seed in (0, 4)]

    assert asked(make_suite(tmp_path)) == [0, 4]
    assert asked(make_suite(tmp_path, 'replicate = "split"')) == [0, 4]
    assert asked(make_suite(tmp_path, 'replicate = "seed"')) == [None, None]
    with pytest.raises(ConfigError, match="replicate"):
        make_suite(tmp_path, 'replicate = "both"')


def test_runs_of_both_kinds_lie_in_one_store_and_each_suite_finds_its_own(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    add(runs, [(0, 0), (1, 0), (2, 0), (1, 1), (2, 2)])
    tables = {
        kind: suite_table(make_suite(tmp_path, f'replicate = "{kind}"'), stored(runs), get_manager())
        for kind in ("seed", "split")
    }
    by_id = {record.run_id: record for record in stored(runs)}
    for kind, table in tables.items():
        entry = table.entry("kmeans", "phantom", "all")
        assert entry.n == 3
        splits = {by_id[run].identity["protocol"]["split_seed"] for run in entry.runs}
        assert splits == ({0} if kind == "seed" else {0, 1, 2})
    assert tables["split"].caption != tables["seed"].caption
    means = {table.entry("kmeans", "phantom", "all").mean for table in tables.values()}
    assert len(means) == 2


def test_a_sweep_plans_only_the_splits_that_are_missing(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    add(runs, [(0, 0), (1, 0), (2, 0), (2, 2)])
    plan = plan_suite(make_suite(tmp_path), "smoke", get_manager(), stored(runs), rows=["kmeans"])
    states = {run.request.seed: run.state for run in plan.runs}
    assert states == {0: "done", 1: "missing", 2: "done"}


def test_other_images_of_one_seed_are_left_out(tmp_path: Path) -> None:
    """Which split a split seed makes is decided by the images: no row mixes two sets of them."""
    runs = tmp_path / "runs"
    add(runs, [(0, 0), (1, 1), (2, 2)])
    add(runs, [(0, 0), (1, 1), (2, 2)], "ss-kmeans")
    records = stored(runs)
    odd = next(record for record in records if record.method == "kmeans" and record.seed == 1)
    changed = odd.common.text.replace(f"{1:064x}", "f" * 64).replace('"fake"', '"more images"')
    vars(odd)["common"] = type(odd.common)(digest="other", text=changed)
    table = suite_table(make_suite(tmp_path), records, get_manager())
    assert table.entry("ss-kmeans", "phantom", "all").n == 3
    assert table.entry("kmeans", "phantom", "all").n == 2
    assert any("left out" in note for note in table.notes)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(1, 1), (2, 2), (3, 3)], [[(1, 1), (2, 2), (3, 3)]]),
        ([(0, 0), (1, 1)], [[(0, 0), (1, 1)]]),
        # The first split of several seeds stays with them.
        ([(0, 0), (1, 0), (1, 1), (2, 2)], [[(0, 0), (1, 0)], [(1, 1), (2, 2)]]),
        # A seed that did not draw its split is nobody's replicate.
        ([(0, 1), (0, 2), (3, 3), (4, 4)], [[(0, 1)], [(0, 2)], [(3, 3), (4, 4)]]),
        ([(0, 0)], [[(0, 0)]]),
    ],
)
def test_no_group_mixes_the_two_kinds(
    tmp_path: Path, pairs: list[tuple[int, int]], expected: list[list[tuple[int, int]]]
) -> None:
    add(tmp_path / "runs", pairs)
    assert groups(tmp_path / "runs") == set(map(frozenset, expected))


def test_the_table_of_all_runs_has_a_row_for_each_kind(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for method in ("kmeans", "ss-kmeans"):
        add(runs, [(0, 0), (1, 0), (2, 0), (1, 1), (2, 2), (3, 3)], method)
    table = plain_table(stored(runs), get_manager())
    assert sorted(table.entry(row.key, "", "all").n for row in table.rows) == [3, 3, 3, 3]
    texts = {row.remark for row in table.rows}
    assert texts == {"split_seed=0", "split_seed=one per seed"}
    blocks = [row.block for row in table.rows]
    assert sorted(map(blocks.count, set(blocks))) == [2, 2], "methods compete over replicates of one kind only"
