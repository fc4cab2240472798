"""Suites: what they ask for, what is found, and files that are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gcdbench.core.errors import ConfigError, UnknownName
from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.records import cell_records
from gcdbench.reporting.suites import planning
from gcdbench.reporting.suites.finding import RunFinder
from gcdbench.reporting.suites.planning import plan_suite
from gcdbench.reporting.suites.read import load_suite
from gcdbench.reporting.suites.seeds import parse_seeds
from gcdbench.runs.duration import Expected
from gcdbench.runs.index import load_runs
from gcdbench.runs.request import Request
from gcdbench.testing.stored import FakeRun, edit_sealed, write_fake_run

SMALL = """
title = "Small"
[presets.smoke]
seeds = [0, 1]
stand_in = "missing"
[presets.laptop]
seeds = [0]
[[columns]]
dataset = "organamnist"
[[columns]]
dataset = "organcmnist"
[[rows]]
method = "simgcd"
[[rows]]
method = "pixels-kmeans"
[[sweeps]]
method = "simgcd"
setting = "lr"
values = [0.1, 0.2]
"""


@pytest.fixture(scope="module")
def manager():
    return PluginManager(points=[])


@pytest.fixture
def small(tmp_path, manager):
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return load_suite(path, manager)


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No dataset can be found."""
    monkeypatch.setenv("GCDBENCH_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "nowhere"


def test_a_sweep_gives_a_row_for_each_value(small):
    rows = [row for row in small.rows if row.group]
    assert [(row.key, row.x, row.settings) for row in rows] == [
        ("lr=0.1", 0.1, {"lr": 0.1}),
        ("lr=0.2", 0.2, {"lr": 0.2}),
    ]


def test_missing_data_is_replaced_once_and_said(small, manager, nowhere):
    plan = plan_suite(small, "smoke", manager, [], data_root=nowhere)
    assert plan.stand_ins == {"organamnist": "phantom", "organcmnist": "phantom"}
    # lr = 0.1 is the default, so that row is the same run as plain simgcd: 3 settings by 2 seeds, planned once.
    assert len(plan.runs) == 6
    assert {run.state for run in plan.runs} == {"missing"}
    never = plan_suite(small, "smoke", manager, [], data_root=nowhere, stand_in="never")
    assert {run.state for run in never.runs} == {"impossible"}
    assert all("organ" in run.problem.lower() for run in never.runs)


def test_finished_runs_are_recognised_and_others_not(small, manager, nowhere, tmp_path):
    runs = tmp_path / "runs"
    request = Request(method="simgcd", dataset="phantom", preset="smoke", seed=0)
    write_fake_run(runs, FakeRun(request=request), manager)
    write_fake_run(runs, FakeRun(request=replace(request, seed=1), status="failed"), manager)
    other = replace(request, seed=1, method="pixels-kmeans", dataset_options={"n_per_class": "999"})
    write_fake_run(runs, FakeRun(request=other), manager)
    plan = plan_suite(small, "smoke", manager, cell_records(load_runs(runs)), data_root=nowhere)
    states = {(run.row, run.request.seed): run.state for run in plan.runs}
    assert states["simgcd", 0] == "done"
    assert states["simgcd", 1] == "missing"
    assert states["pixels-kmeans", 1] == "missing"
    # The duration of a like run is the estimate for the next one.
    (again,) = [run for run in plan.runs if (run.row, run.request.seed) == ("simgcd", 1)]
    assert again.seconds == pytest.approx(60.0)


def test_what_this_machine_was_measured_to_do_counts_before_stored_runs(small, manager, nowhere, tmp_path, monkeypatch):
    request = Request(method="simgcd", dataset="phantom", preset="smoke", seed=0)
    write_fake_run(tmp_path / "runs", FakeRun(request=request), manager)
    monkeypatch.setattr(planning.Expectations, "expect", lambda *_: Expected(once=40.0, own=2.0))
    plan = plan_suite(small, "smoke", manager, cell_records(load_runs(tmp_path / "runs")), data_root=nowhere)
    told = {run.row: run.seconds for run in plan.in_state("missing")}
    assert told == {"simgcd": 42.0, "lr=0.2": 42.0, "pixels-kmeans": 42.0}


def test_runs_with_more_epochs_do_not_tell_how_long_fewer_take(small, manager, nowhere, tmp_path):
    request = Request(method="simgcd", dataset="phantom", preset="smoke", seed=0, overrides={"epochs": "77"})
    write_fake_run(tmp_path / "runs", FakeRun(request=request), manager)
    plan = plan_suite(small, "smoke", manager, cell_records(load_runs(tmp_path / "runs")), data_root=nowhere)
    assert {run.seconds for run in plan.in_state("missing")} == {None}


def test_other_weights_are_another_run(manager, tmp_path):
    request = Request(method="simgcd", dataset="phantom", preset="smoke", seed=0)
    directory = write_fake_run(tmp_path, FakeRun(request=request), manager)
    edit_sealed(directory.record_path, lambda record: record["identity"].update(weights_sha256="random"))
    finder = RunFinder(cell_records(load_runs(tmp_path)), manager)
    assert finder.find(request) == []


def test_runs_of_a_plugin_that_is_not_here_are_found_by_name_where_that_is_enough(manager, tmp_path):
    request = Request(method="simgcd", dataset="kvasir", preset="laptop", seed=0)
    for seed in (0, 1):
        directory = write_fake_run(tmp_path, FakeRun(request=replace(request, seed=seed)), manager)
        edit_sealed(directory.record_path, lambda record: record.update(method="foreign"))

    def found(**changes):
        finder = RunFinder(cell_records(load_runs(tmp_path)), manager)
        return [run.seed for run in finder.find(replace(request, method="foreign", **changes))]

    assert (found(seed=0), found(seed=1), found(seed=2)) == ([0], [1], [])
    assert found(protocol="half") == []
    assert found(overrides={"lr": 0.5}) == []
    other = write_fake_run(tmp_path, FakeRun(request=replace(request, seed=5, overrides={"lr": 0.5})), manager)
    edit_sealed(other.record_path, lambda record: record.update(method="foreign"))
    assert found(seed=0) == []  # two settings under one name: nobody knows which of them is meant


def test_runs_of_a_preset_that_is_not_here_are_found_by_name(manager, tmp_path):
    request = Request(method="simgcd", dataset="kvasir", preset="laptop", seed=0)
    directory = write_fake_run(tmp_path, FakeRun(request=request), manager)
    edit_sealed(directory.record_path, lambda record: record.update(preset="theirs"))
    finder = RunFinder(cell_records(load_runs(tmp_path)), manager)
    assert [run.run_id for run in finder.find(replace(request, preset="theirs"))] == [directory.path.name]
    assert finder.find(replace(request, preset="others")) == []
    assert finder.find(replace(request, preset="theirs", protocol="half")) == []


def test_a_request_that_cannot_be_planned_finds_nothing(manager, tmp_path):
    request = Request(method="simgcd", dataset="kvasir", preset="laptop", seed=0)
    write_fake_run(tmp_path, FakeRun(request=request), manager)
    finder = RunFinder(cell_records(load_runs(tmp_path)), manager)
    assert len(finder.find(request)) == 1
    assert finder.find(replace(request, protocol="no-such-protocol")) == []


def test_rows_datasets_seeds_and_protocol_can_be_chosen(small, manager, nowhere):
    plan = plan_suite(
        small, "laptop", manager, [], rows=["lr=0.2"], datasets=["organamnist"], seeds=[4, 5], protocol="by-count"
    )
    assert [(run.row, run.request.seed, run.request.protocol) for run in plan.runs] == [
        ("lr=0.2", 4, "by-count"),
        ("lr=0.2", 5, "by-count"),
    ]
    with pytest.raises(UnknownName, match="preset"):
        plan_suite(small, "huge", manager, [])


def test_a_name_is_a_row_first_and_a_method_only_where_no_row_has_it(small):
    def keys(*names):
        return [row.key for row in small.rows_named(names)]

    assert keys() == [row.key for row in small.rows]
    assert keys("simgcd") == ["simgcd"]
    assert keys("lr=0.2", "pixels-kmeans") == ["pixels-kmeans", "lr=0.2"]
    renamed = replace(small, rows=tuple(replace(row, key=f"row-{i}") for i, row in enumerate(small.rows)))
    assert [row.key for row in renamed.rows_named(["simgcd"])] == ["row-0", "row-2", "row-3"]


def test_names_that_a_suite_does_not_have_are_refused(small, manager):
    with pytest.raises(UnknownName, match="no row or method in suite 'small' named 'simgdc'; did you mean 'simgcd'"):
        plan_suite(small, "smoke", manager, [], rows=["lr=0.1", "simgdc"])
    with pytest.raises(UnknownName, match="no dataset in suite 'small' named 'kvasir'; known: organamnist"):
        plan_suite(small, "smoke", manager, [], datasets=["kvasir"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: "title = [", "not valid TOML"),
        (lambda t: t.replace("title", "titel", 1), "unknown key 'titel'"),
        (lambda t: t.replace('title = "Small"', ""), "'title' must be a string"),
        (lambda t: t.replace("seeds = [0, 1]", 'seeds = "all"'), "seeds"),
        (lambda t: t.replace('"missing"', '"maybe"'), "stand_in"),
        (lambda t: t.replace('method = "pixels-kmeans"', 'method = "simgcd"'), "two rows have the key 'simgcd'"),
        (lambda t: t + '[[columns]]\ndataset = "organamnist"\n', "two columns have the dataset 'organamnist'"),
        (lambda t: t + '[[columns]]\ndataset = "kvasir"\nprotocol = 3\n', "'protocol' must be a string"),
        (lambda t: t.replace("[[rows]]\n", "[[rows]]\nvariant = 3\n", 1), "'variant' must be a string"),
        (lambda t: t.replace("values = [0.1, 0.2]", "values = []"), "needs a list of 'values'"),
        (lambda t: t.replace("[[columns]]", "[[colums]]"), "unknown key 'colums'"),
        (lambda t: 'kind = "pie"\n' + t, "'kind' must be one of"),
        (lambda t: 'title = "x"', "at least one"),
        (lambda t: "scores = []\n" + t, "at least one score"),
        (lambda t: 'reported = "printed.csv"\n' + t, "names 'printed.csv', which is not next to it"),
        (lambda t: "stand_in_dataset = 1\n" + t, "'stand_in_dataset' must be a string"),
        (lambda t: t.replace("[[rows]]\n", "[[rows]]\nset_in.laptpo = { lr = 1.0 }\n", 1), "no preset 'laptpo'"),
        (lambda t: t.replace("[[rows]]\n", "[[rows]]\nset_on.kvasri = { lr = 1.0 }\n", 1), "no column 'kvasri'"),
    ],
)
def test_wrong_files_are_one_sentence(tmp_path, manager, change, message):
    path = tmp_path / "wrong.toml"
    path.write_text(change(SMALL))
    with pytest.raises(ConfigError, match=message):
        load_suite(path, manager)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path, manager):
    with pytest.raises(ConfigError, match="cannot be read"):
        load_suite(tmp_path / "absent.toml", manager)


def test_another_stand_in_than_the_phantom_has_its_own_protocol(tmp_path, manager, nowhere):
    (tmp_path / "other.toml").write_text('stand_in_dataset = "pbc"\n' + SMALL)
    plan = plan_suite(load_suite(tmp_path / "other.toml", manager), "smoke", manager, [], data_root=nowhere)
    assert set(plan.stand_ins.values()) == {"pbc"}
    assert {(run.request.dataset, run.request.protocol) for run in plan.runs} == {("pbc", "half")}
    (tmp_path / "third.toml").write_text('stand_in_dataset = "kvasir"\n' + SMALL)
    plan = plan_suite(load_suite(tmp_path / "third.toml", manager), "smoke", manager, [], data_root=nowhere)
    assert {run.request.protocol for run in plan.runs} == {"paper-stated"}


def test_a_protocol_that_no_dataset_of_a_suite_has_is_refused(small, manager):
    with pytest.raises(
        ConfigError, match=r"No dataset of suite 'small' has a protocol 'paper-statd'; they have paper-st"
    ):
        plan_suite(small, "smoke", manager, [], protocol="paper-statd")


def test_seeds_as_people_write_them():
    assert parse_seeds("0-4") == (0, 1, 2, 3, 4)
    assert parse_seeds("3, 1,1-2") == (3, 1, 2)
    for wrong in ("", "a", "4-0", "-1", "1;2"):
        with pytest.raises(ConfigError):
            parse_seeds(wrong)
