"""Tables of paired differences, against scipy and over nothing but shared seeds."""

from __future__ import annotations

import csv
import io
import json
import statistics

import numpy as np
import pytest
import scipy.stats
from click.testing import CliRunner

from gcdbench.cli.table import command
from gcdbench.core.errors import ConfigError
from gcdbench.reporting.tables.grid import lay_out
from gcdbench.reporting.tables.render import FORMATS, render
from gcdbench.reporting.tables.suite_table import suite_table


def by_seed(store, method, score="all"):
    return {r.seed: r.scores[score] for r in store.records() if r.method == method}


@pytest.fixture
def two(store):
    """SimGCD on seven seeds, LegoGCD on five of them, on accuracies that lie close together."""
    store.add("simgcd", range(7), accuracy=0.60)
    store.add("legogcd", range(5), accuracy=0.62)
    return store


@pytest.mark.parametrize("score", ["all", "old", "new"])
def test_differences_are_paired_over_shared_seeds(two, suite, manager, score):
    table = suite_table(suite, two.records(), manager, against="simgcd")
    entry = table.entry("legogcd", "kvasir", score)
    first, second = by_seed(two, "legogcd", score), by_seed(two, "simgcd", score)
    differences = [first[seed] - second[seed] for seed in range(5)]
    assert entry.n == 5
    assert entry.missing == (5, 6)
    assert entry.mean == pytest.approx(statistics.mean(differences))
    assert entry.sd == pytest.approx(statistics.stdev(differences))
    assert entry.above == sum(d > 0 for d in differences)
    expected = scipy.stats.permutation_test((np.array(differences),), np.mean, permutation_type="samples")
    assert entry.p == pytest.approx(expected.pvalue)
    low, high = scipy.stats.t.interval(0.95, 4, statistics.mean(differences), scipy.stats.sem(differences))
    assert (entry.low, entry.high) == pytest.approx((low, high))


def test_the_reference_has_no_row_and_rows_without_a_shared_seed_have_no_number(two, suite, manager):
    table = suite_table(suite, two.records(), manager, against="SimGCD")
    assert [row.key for row in table.rows] == ["legogcd", "low"]
    assert table.reference == "SimGCD"
    assert table.entry("low", "kvasir", "all").mean is None
    assert [column.key for column in table.columns] == ["kvasir"]


def test_bold_is_for_what_the_corrected_test_allows(store, suite, manager):
    store.add("simgcd", range(7), accuracy=0.5)
    store.add("legogcd", range(7), accuracy=0.9)
    alone = suite_table(suite, store.records(), manager, against="simgcd").entry("legogcd", "kvasir", "all")
    assert alone.bold
    assert alone.p == pytest.approx(2 / 2**7)
    store.add("simgcd", range(7), accuracy=0.8, overrides={"lr": 0.01})
    both = suite_table(suite, store.records(), manager, against="simgcd")
    assert both.entry("legogcd", "kvasir", "all").p == pytest.approx(2 * 2 / 2**7)  # Holm, two rows
    few = suite_table(suite, store.records(), manager, against="simgcd", seeds=range(5))
    assert not few.entry("legogcd", "kvasir", "all").bold


@pytest.mark.parametrize(("seeds", "too_small"), [(2, True), (5, True), (6, False)])
def test_it_says_when_no_difference_could_be_significant(store, suite, manager, seeds, too_small):
    """With n pairs the smallest two-sided p of a sign-flip test is 2 / 2**n."""
    assert (2 / 2**seeds > 0.05) == too_small
    store.add("simgcd", range(7), accuracy=0.1)
    store.add("legogcd", range(seeds), accuracy=0.99)
    table = suite_table(suite, store.records(), manager, against="simgcd")
    said = [note for note in table.notes if f"n = {seeds} is too small" in note]
    assert len(said) == too_small
    assert all("Kvasir" in note and "6 shared seeds" in note for note in said)
    assert table.entry("legogcd", "kvasir", "all").bold == (not too_small)
    arguments = [str(suite.folder / "two.toml"), "--preset", "laptop", "--against", "simgcd", "--runs", str(store.path)]
    printed = CliRunner().invoke(command, arguments)
    assert printed.exit_code == 0, printed.exception
    assert ("is too small" in printed.output) == too_small


@pytest.mark.parametrize("layout", ["long", "wide", "tall"])
def test_every_layout_shows_the_sign(two, suite, manager, layout):
    table = suite_table(suite, two.records(), manager, against="simgcd")
    entry = table.entry("legogcd", "kvasir", "all")
    texts = [cell.text for row in lay_out(table, layout).rows for cell in row.cells]
    assert any(text.startswith(f"{entry.mean:+.1f}") for text in texts)


def test_data_formats_hold_p_only_where_something_was_tested(two, suite, manager):
    table = suite_table(suite, two.records(), manager, against="simgcd")
    lines = list(csv.DictReader(io.StringIO(render(table, "csv"))))
    assert {line["row"] for line in lines} == {"legogcd", "low"}
    assert float(next(line["p"] for line in lines if line["n"] == "5")) <= 1
    assert json.loads(render(table, "json"))["against"] == "SimGCD"
    assert "p" not in json.loads(render(suite_table(suite, two.records(), manager), "json"))["entries"][0]
    for name in FORMATS:
        assert render(table, name)


def test_the_command_refuses_what_it_cannot_compare(two, suite, tmp_path):
    unknown = CliRunner().invoke(command, ["errors", "--against", "nobody", "--runs", str(two.path)])
    assert isinstance(unknown.exception, ConfigError)
    assert "no row 'nobody'" in str(unknown.exception)
    without = CliRunner().invoke(command, ["--against", "simgcd", "--runs", str(two.path)])
    assert isinstance(without.exception, ConfigError)
    assert "--against needs a suite" in str(without.exception)
