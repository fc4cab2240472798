"""What a table says beside its numbers, so that nobody takes a mean for more than it is."""

from __future__ import annotations

import dataclasses
import json

import pytest

from gcdbench.reporting.tables.grid import lay_out, p_text
from gcdbench.reporting.tables.suite_notes import weight_notes
from gcdbench.reporting.tables.suite_table import suite_table
from gcdbench.runs.run_entry import Settings

SEEDS = range(7)


def notes_with(table, words):
    return [note for note in table.notes if words in note]


def test_stored_seeds_that_a_table_leaves_out_are_named(store, suite, manager):
    store.add("simgcd", range(9))
    store.add("simgcd", [11], overrides={"epochs": 7})  # another row altogether
    store.add("simgcd", [8], overrides={"lr": 0.01}, status="failed")
    store.add("legogcd", SEEDS)
    (note,) = notes_with(suite_table(suite, store.records(), manager), "other seeds")
    assert "left out: SimGCD on Kvasir (2);" in note
    every = suite_table(suite, store.records(), manager, seeds=range(9))
    assert not notes_with(every, "other seeds")


def test_the_caption_says_when_all_seeds_share_a_split(store, suite, manager):
    store.add("simgcd", SEEDS)
    records = store.records()
    assert "the split is the same for every seed" in suite_table(suite, records, manager).caption
    other = {**records[0].common.identity, "manifest_sha256": "of another split"}
    mixed = [dataclasses.replace(records[0], common=Settings(digest="other", text=json.dumps(other))), *records[1:]]
    assert "the split is the same" not in suite_table(suite, [], manager).caption
    # Runs on another split are other runs: they are left out of the mean, and that is said.
    table = suite_table(suite, mixed, manager)
    assert table.entry("simgcd", "kvasir", "all").n == len(SEEDS) - 1
    assert table.entry("simgcd", "kvasir", "all").missing == (records[0].seed,)
    assert notes_with(table, "Kvasir: 1 finished run(s) on other images or another split are left out.")


@pytest.mark.parametrize(("preset", "said"), [("laptop", 1), ("paper", 0)])
def test_published_numbers_of_another_set_up_are_called_that(store, suite, manager, preset, said):
    table = suite_table(suite, store.records(), manager, preset=preset)
    assert table.has_reported
    assert len(notes_with(table, f"where preset {preset} differs")) == said


def test_missing_bold_names_the_score_it_is_about(store, suite, manager):
    store.add("simgcd", SEEDS, accuracy=0.7, false_old=0.5)
    store.add("legogcd", SEEDS, accuracy=0.7, false_old=0.0)
    table = suite_table(suite, store.records(), manager, scores=("false_old",), seeds=(0, 1))
    assert notes_with(table, "No bold in false-old for Kvasir")


def test_a_single_shared_seed_has_no_mean_rank(store, suite, manager):
    store.add("simgcd", SEEDS)
    store.add("legogcd", SEEDS)
    assert notes_with(suite_table(suite, store.records(), manager), "Mean rank over the 7")
    assert not notes_with(suite_table(suite, store.records(), manager, seeds=[0]), "Mean rank")


def test_a_time_that_fewer_runs_have_shows_its_own_count(store, suite, manager):
    store.add("simgcd", [0, 1], extra={"seconds": {"fit": 10.0}})
    store.add("simgcd", [2], extra={"seconds": {}, "resumed": True})
    table = suite_table(suite, store.records(), manager, scores=("all", "seconds"))
    (row, *_) = [row for row in lay_out(table, "long").rows if row.cells]
    assert [cell.text for cell in row.cells][1] == "3"
    assert row.cells[-1].text.endswith("(n = 2)")
    assert "(n" not in row.cells[2].text


def test_what_is_not_installed_is_named(store, suite, manager):
    other = dataclasses.replace(suite.rows[0], key="theirs", method="their-method")
    elsewhere = dataclasses.replace(suite.columns[0], dataset="their-data:path")
    theirs = dataclasses.replace(suite, rows=(*suite.rows, other), columns=(*suite.columns, elsewhere))
    (note,) = notes_with(suite_table(theirs, store.records(), manager), "Not installed here")
    assert "method 'their-method', dataset 'their-data'." in note
    assert not notes_with(suite_table(suite, store.records(), manager), "Not installed here")


@pytest.mark.parametrize(
    ("p", "text"), [(None, "—"), (1.0, "1.000"), (0.05, "0.050"), (0.001, "0.001"), (0.0009, "< 0.001"), (0, "< 0.001")]
)
def test_no_p_is_printed_as_zero(p, text):
    assert p_text(p) == text


def with_weights(common, sha256):
    """The settings of runs that were made with other weights."""
    return Settings(digest=sha256, text=json.dumps({**common.identity, "weights_sha256": sha256}))


def test_rows_made_with_weights_that_cannot_be_passed_on_say_so(store, suite, manager):
    """By the digest in the run's identity; the file itself need not be here."""
    store.add("simgcd", SEEDS)
    store.add("legogcd", SEEDS)
    assert not notes_with(suite_table(suite, store.records(), manager), "redistributed")
    closed = "f97fed1c56ff2e38544baa27f62db3ca1d94ae2f7925ac02c2b19ca2a1469c15"
    given = [
        dataclasses.replace(record, common=with_weights(record.common, closed))
        if record.method == "legogcd"
        else record
        for record in store.records()
    ]
    notes = weight_notes({("a", "x"): given[:7], ("b", "x"): given[7:]})
    assert len(notes) == 1
    assert "cannot be redistributed" in notes[0]
    (owner,) = [row for row, found in (("a", given[:7]), ("b", given[7:])) if found[0].method == "legogcd"]
    assert f"rows {owner}" in notes[0]
