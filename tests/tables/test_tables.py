"""Tables from stored runs: what is averaged, what is marked, and every format read back by an independent parser."""

from __future__ import annotations

import json
import re
import shutil
import statistics
from dataclasses import replace

import pytest
from click.testing import CliRunner

from gcdbench.cli.table import command
from gcdbench.core.errors import ConfigError
from gcdbench.reporting.suites.read import load_suite
from gcdbench.reporting.tables.bootstrap import RunBootstrap
from gcdbench.reporting.tables.grid import lay_out
from gcdbench.reporting.tables.plain import plain_table
from gcdbench.reporting.tables.render import FORMATS, render
from gcdbench.reporting.tables.suite_table import choose_preset, suite_table
from gcdbench.reporting.tables.terminal import fit
from gcdbench.testing.stored import edit_sealed

SEEDS = range(7)


def values(store, method, dataset="kvasir", score="all"):
    return [
        json.loads((path / "scores.json").read_text())["sets"]["transductive"]["scores"][score]
        for path in sorted((store.path / dataset / method).iterdir())
    ]


def test_cells_are_means_over_seeds_with_published_numbers_beside(store, suite, manager):
    store.add("simgcd", SEEDS, accuracy=0.6)
    store.add("legogcd", SEEDS[:5], accuracy=0.9)
    table = suite_table(suite, store.records(), manager)
    entry = table.entry("simgcd", "kvasir", "all")
    expected = values(store, "simgcd")
    assert entry.n == 7
    assert entry.mean == pytest.approx(statistics.mean(expected))
    assert entry.sd == pytest.approx(statistics.stdev(expected))
    assert entry.reported.value == 72.8
    assert entry.difference == pytest.approx(entry.mean - 72.8)
    assert table.entry("legogcd", "kvasir", "old").missing == (5, 6)
    assert any("missing somewhere: 5, 6" in note for note in table.notes)
    assert table.entry("simgcd", "organamnist", "all").n == 0
    assert table.entry("low", "kvasir", "all").n == 0
    assert "preset laptop" in table.caption
    assert "paper-stated" in table.caption


def test_runs_with_other_settings_are_never_averaged_together(store, suite, manager):
    store.add("simgcd", SEEDS, accuracy=0.6)
    store.add("simgcd", SEEDS, accuracy=0.9, overrides={"lr": 0.01})
    store.add("simgcd", SEEDS, accuracy=0.1, overrides={"epochs": 7})
    table = suite_table(suite, store.records(), manager)
    assert table.entry("low", "kvasir", "all").mean > 80
    assert 50 < table.entry("simgcd", "kvasir", "all").mean < 75
    plain = plain_table(store.records(), manager)
    assert len(plain.rows) == 3
    assert {row.remark for row in plain.rows} == {"", "lr=0.01", "epochs=7"}  # nothing is said of defaults
    assert [text for text, _ in lay_out(plain).header[-1]][-1] == "settings"  # after the numbers


def test_bold_needs_enough_shared_seeds(store, suite, manager):
    store.add("simgcd", SEEDS, accuracy=0.5)
    store.add("legogcd", SEEDS, accuracy=0.9)
    table = suite_table(suite, store.records(), manager)
    assert table.entry("legogcd", "kvasir", "all").bold
    assert not table.entry("simgcd", "kvasir", "all").bold
    few = suite_table(suite, store.records(), manager, seeds=(0, 1, 2))
    assert not few.entry("legogcd", "kvasir", "all").bold
    assert any("too few shared runs" in note for note in few.notes)
    assert table.ranks == {"simgcd": 2.0, "legogcd": 1.0}


@pytest.mark.parametrize(
    "overrides", [{"image_size": 224}, {"epochs": 7}, {"views": "bank:4"}, {"backbone": "resnet18", "weights": "none"}]
)
def test_rows_made_under_different_conditions_do_not_compete(store, overrides, manager):
    store.add("simgcd", SEEDS, accuracy=0.5)
    store.add("legogcd", SEEDS, accuracy=0.9, overrides=overrides)
    assert not any(entry.bold for entry in plain_table(store.records(), manager).entries.values())
    store.add("legogcd", SEEDS, accuracy=0.9)
    assert any(entry.bold for entry in plain_table(store.records(), manager).entries.values())


def test_bold_goes_to_the_lowest_error(store, suite, manager):
    store.add("simgcd", SEEDS, false_old=0.5)
    store.add("legogcd", SEEDS, false_old=0.0)
    table = suite_table(suite, store.records(), manager, scores=("all", "false_old"))
    assert table.entry("legogcd", "kvasir", "false_old").bold
    assert not table.entry("simgcd", "kvasir", "false_old").bold


def test_failed_runs_are_counted_and_not_averaged(store, suite, manager):
    store.add("simgcd", [0, 1])
    store.add("simgcd", [2], status="failed", extra={"error": "loss is not finite"})
    table = suite_table(suite, store.records(), manager)
    entry = table.entry("simgcd", "kvasir", "all")
    assert (entry.n, entry.failed) == (2, 1)
    assert any("1 failed run(s)" in note for note in table.notes)


def test_a_single_run_gets_a_bootstrap_interval_over_groups(store, suite, manager):
    store.add("simgcd", [0], samples=300)
    table = suite_table(suite, store.records(), manager, bootstrap=RunBootstrap())
    entry = table.entry("simgcd", "kvasir", "all")
    assert entry.interval_kind == "bootstrap"
    assert entry.low < entry.mean < entry.high
    assert entry.sd is None


def test_a_stand_in_is_said_and_never_compared_with_published_numbers(store, suite, manager):
    store.add("simgcd", [0], dataset="phantom", preset="smoke")
    records = store.records()
    assert choose_preset(suite, records) == "smoke"
    table = suite_table(suite, records, manager)
    (column,) = table.columns
    assert column.stand_in_for == ("Kvasir", "OrganAMNIST")
    assert table.entry("simgcd", "phantom", "all").n == 1
    assert not table.has_reported
    assert any("stands in for Kvasir, OrganAMNIST" in note for note in table.notes)
    store.add("simgcd", [0], dataset="kvasir", preset="smoke")
    mixed = suite_table(suite, store.records(), manager, preset="smoke")
    assert [c.key for c in mixed.columns] == ["kvasir", "phantom"]


def test_imported_runs_of_a_method_that_is_not_installed_are_still_shown(store, suite, manager, tmp_path):
    directory = store.add("simgcd", [0])
    target = directory.path.parent.parent / "unheard-of" / directory.path.name
    shutil.copytree(directory.path, target)

    def rename(record):
        record["method"] = record["identity"]["method"] = "unheard-of"

    edit_sealed(target / "run.json", rename)
    text = (tmp_path / "two.toml").read_text()
    (tmp_path / "three.toml").write_text(text + '\n[[rows]]\nmethod = "unheard-of"\n')
    table = suite_table(load_suite(tmp_path / "three.toml", manager), store.records(), manager)
    assert table.entry("unheard-of", "kvasir", "all").n == 1


def invoke(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_the_command_writes_every_format(store):
    store.add("simgcd", [0, 1])
    assert "2 finished runs" in invoke("--runs", store.path).output
    for name in FORMATS:
        result = invoke("--runs", store.path, "--format", name)
        assert result.exit_code == 0
        assert "simgcd" in result.output


def test_a_committed_table_is_checked_against_the_runs(store, suite, tmp_path):
    store.add("simgcd", [0, 1])
    name, file = tmp_path / "two.toml", tmp_path / "two.md"
    assert invoke(name, "--runs", store.path, "--output", file).exit_code == 0
    assert invoke(name, "--runs", store.path, "--check", file).exit_code == 0
    store.add("simgcd", [2])
    stale = invoke(name, "--runs", store.path, "--check", file)
    assert stale.exit_code == 1
    assert "does not follow from the runs" in stale.output
    file.write_text(file.read_text().replace("72.8", "72.9"))
    assert invoke(name, "--runs", store.path, "--check", file).exit_code == 1


def test_a_cell_is_explained_by_its_runs(store, suite, tmp_path):
    directory = store.add("simgcd", [0, 1])
    result = invoke(tmp_path / "two.toml", "--runs", store.path, "--explain", "SimGCD", "kvasir")
    assert result.exit_code == 0
    assert directory.path.name in result.output
    assert re.search(r"all: \d+\.\d+ ± \d+\.\d+ \(n = 2\), reported 72\.8", result.output)
    assert "no finished run for seed(s) 2, 3, 4, 5, 6" in result.output
    unknown = invoke(tmp_path / "two.toml", "--runs", store.path, "--explain", "SimGCD", "mars")
    assert isinstance(unknown.exception, ConfigError)


def test_an_empty_store_says_how_to_begin(tmp_path):
    result = invoke("--runs", tmp_path / "nothing")
    assert result.exit_code == 0
    assert "gcdbench run" in result.output


def test_four_scores_and_narrow_windows_get_a_line_for_each_score(store, suite, manager):
    store.add("simgcd", [0, 1])
    three = suite_table(suite, store.records(), manager)
    four = suite_table(suite, store.records(), manager, scores=("all", "old", "new", "false_old"))
    assert lay_out(three) == lay_out(three, "long")
    assert lay_out(four) == lay_out(four, "tall")
    assert "Kvasir: false-old" in [row.section for row in lay_out(four).rows]
    assert fit(three, "auto", 300) == lay_out(three, "long")
    assert fit(three, "auto", 80) == lay_out(three, "tall")
    assert fit(three, "long", 80) == lay_out(three, "long")


def test_the_ranks_of_all_runs_name_what_differs_and_how_much_is_shared(store, manager):
    store.add("simgcd", [0, 1, 2], accuracy=0.5)
    store.add("legogcd", [1, 2], accuracy=0.9)
    (ranks,) = [note for note in plain_table(store.records(), manager).notes if note.startswith("Mean rank")]
    assert ranks.endswith("over the 2 (dataset, seed) pairs that all these rows share: legogcd 1.00, simgcd 2.00.")


def test_labels_that_all_rows_share_are_said_once_and_kept_in_data(store, manager):
    store.add("simgcd", [0])
    store.add("legogcd", [0])
    grid = lay_out(plain_table(store.records(), manager))
    assert [text for text, _ in grid.header[-1]][:3] == ["dataset", "method", "n"]
    assert "All rows: protocol paper-stated, K known, preset laptop" in grid.caption
    (first, *_) = json.loads(render(plain_table(store.records(), manager), "json"))["entries"]
    assert first["protocol"] == "paper-stated"
    store.add("simgcd", [0], overrides={"image_size": 160})
    grid = lay_out(plain_table(store.records(), manager))
    assert [text for text, _ in grid.header[-1]][:4] == ["dataset", "method", "px", "n"]


def test_intervals_of_shares_stay_between_0_and_100(store, suite, manager):
    store.add("simgcd", [0], accuracy=1.0, false_old=0.0)
    store.add("simgcd", [1], accuracy=0.5)
    entry = suite_table(suite, store.records(), manager).entry("simgcd", "kvasir", "all")
    assert entry.interval_kind == "t"
    assert entry.low >= 0
    assert entry.high == 100


def test_intervals_of_run_times_do_not_begin_below_0(store, suite, manager):
    store.add("simgcd", [0, 1])
    records = [replace(record, spent={"seconds": 10.0 + 500.0 * record.seed}) for record in store.records()]
    entry = suite_table(suite, records, manager, scores=["seconds"]).entry("simgcd", "kvasir", "seconds")
    assert entry.low == 0
    assert entry.high > 510


def test_costs_have_a_column_each_and_compete_for_nothing(store, suite, manager):
    counts = {"split": {"counts": {"labelled": 70, "unlabelled": 230, "test": 9}}}
    store.add("simgcd", SEEDS, accuracy=0.5, extra={**counts, "seconds": {"fit": 100.0, "predict": 1.0}})
    store.add("legogcd", SEEDS[:6], accuracy=0.9, extra={**counts, "seconds": {}})  # resumed: no time is known
    table = suite_table(suite, store.records(), manager, scores=("all", "seconds", "images_seen"))
    assert table.entry("simgcd", "kvasir", "seconds").mean == 101.0
    # Two whole batches of 128 in each of the laptop preset's 20 epochs; the test part is never shown.
    assert table.entry("simgcd", "kvasir", "images_seen").mean == 2 * 128 * 20
    assert table.entry("legogcd", "kvasir", "seconds").n == 0
    assert not any(table.entry("simgcd", "kvasir", score).bold for score in ("seconds", "images_seen"))
    leaves = [text for text, _ in lay_out(table).header[-1]]
    assert leaves == ["method", "n", "mean ± sd", "95 % interval", "reported", "Δ", "mean ± sd", "mean ± sd"]
    assert [text for text, _ in lay_out(table, "wide").header[-1]] == ["method", "All", "All"]


def test_a_method_without_training_was_shown_nothing(store, manager):
    store.add("kmeans", [0], extra={"split": {"counts": {"labelled": 5, "unlabelled": 5}}})
    (record,) = store.records()
    assert record.scores["images_seen"] == 0


def test_a_training_set_below_one_batch_is_one_batch(store, manager):
    store.add("simgcd", [0], extra={"split": {"counts": {"labelled": 5, "unlabelled": 6}}})
    (record,) = store.records()
    assert record.scores["images_seen"] == 11 * 20
