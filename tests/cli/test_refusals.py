"""Names that match nothing and options that contradict each other: one sentence, exit code 2, nothing overwritten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.request import Request
from gcdbench.testing.stored import FakeRun, edit_sealed, write_fake_run


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two SimGCD runs on Kvasir that differ in a setting, and one of another seed."""
    store, manager = tmp_path / "runs", PluginManager(points=[])
    for seed, overrides in ((0, {}), (0, {"views": "bank:4"}), (1, {})):
        request = Request(method="simgcd", dataset="kvasir", preset="laptop", seed=seed, overrides=overrides)
        write_fake_run(store, FakeRun(request=request), manager)
    return store


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("table", "medxplore/main", "--protocol", "paper-statd"),
            "has a protocol 'paper-statd'; they have paper-stated",
        ),
        (("table", "--preset", "laptpo"), "did you mean 'laptop'"),
        (("table", "--protocol", "half"), "known: paper-stated"),
        (("table", "--seeds", "0"), "--seeds needs a suite"),
        (("table", "medxplore/main", "--scores", "all,odl"), "no score named 'odl'; did you mean 'old'"),
        (("table", "medxplore/main", "--against", "simgcd", "--scores", "seconds"), "not compared seed by seed"),
        (
            ("table", "medxplore/main", "--explain", "simgcd", "kvasir", "--json"),
            "--explain and --json do not go together",
        ),
        (("table", "medxplore/main", "--check", "OUT", "--output", "OUT"), "--check and --output do not go together"),
        (("table", "medxplore/main", "--json", "--format", "csv"), "--json and --format do not go together"),
        (("table", "--check", "OUT", "--runs", "absent"), "There is no run in 'absent'"),
        (("table", "medxplore/main", "-o", "OUT", "--runs", "absent"), "There is no run in 'absent'"),
        (("report", "-o", "OUT", "--runs", "absent"), "There is no run in 'absent'"),
        (("report", "medxplore/main", "-o", "OUT", "--preset", "laptpo"), "did you mean 'laptop'"),
        (("rescore", "--runs", "absent"), "There is no run in 'absent'"),
        (
            ("figure", "bars", "medxplore/main", "-o", "OUT", "--protocol", "paper-statd"),
            "has a protocol 'paper-statd'; they have paper-stated",
        ),
        (("figure", "training", "x", "-o", "OUT", "--seeds", "0"), "choose a suite's runs"),
        (("figure", "training", "x", "-o", "OUT", "--test"), "'training' shows losses"),
        (("export", "OUT"), "must end in .zip"),
        (("export", "a.zip", "--method", "simgdc"), "did you mean 'simgcd'"),
        (("export", "a.zip", "--dataset", "pbc"), "known: kvasir"),
        (
            ("sweep", "medxplore/main", "--protocol", "paper-statd", "--dry-run"),
            "they have paper-stated, paper-implied",
        ),
        (("sweep", "medxplore/main", "--protocol", "x", "--dry-run", "--stand-in", "always"), "has a protocol 'x'"),
        (
            ("run", "--method", "simgcd", "--dataset", "phantom", "--set", "teacher_warmup=30"),
            "at least 0 and at most 1",
        ),
        (("run", "-m", "simgcd", "-d", "phantom", "--set", "tau_s=0"), "'tau_s' must be above 0, not 0"),
        (("run", "-m", "simgcd", "-d", "phantom", "--set", "momentum=1.5"), "at least 0 and below 1"),
        (("run", "-m", "simgcd", "-d", "phantom", "--set", "epochs=0"), "'epochs' must be at least 1"),
        (("run", "-m", "simgcd", "-d", "phantom", "--set", "image_size=8"), "must be at least 16, not 8"),
        (
            ("run", "--method", "simgcd", "--dataset", "phantom", "--set", "precision=float16"),
            "one of float32, bfloat16",
        ),
        (("run", "-m", "dccl", "-d", "phantom", "--set", "threshold=60"), "at least -1 and at most 1, not 60"),
        (("run", "-m", "orca", "-d", "phantom", "--set", "fixed_margin=50"), "at least 0 and at most 1, not 50"),
        (("run", "-m", "simgcd", "-d", "phantom", "--dataset-set", "n_per_class=abc"), "is not a whole number from 4"),
        (("estimate-k", "-d", "phantom", "--device", "cuda:99"), "no device 'cuda:99'"),
        (("explain", "x", "--images", "3,x"), "'3,x' is not a list of image ids"),
        (("run", "-m", "pixels-kmeans", "-d", "phantom", "--set", "backbone=resnet81"), "did you mean 'resnet18'"),
        (("run", "-m", "simgcd", "-d", "phantom", "--set", "lr=1", "--set", "lr=2"), "'lr' is given twice"),
        (("run", "-m", "simgcd", "-d", "phantom", "--backbone", "resnet18", "--set", "backbone=x"), "given twice"),
        (("estimate-k", "-d", "phantom", "--backbone", "resnet18", "--set", "backbone=x"), "given twice"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_it_is_said_and_nothing_is_overwritten(
    cli, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    kept = tmp_path / "kept.html"
    kept.write_text("what somebody wrote")
    result = cli(*(str(kept) if argument == "OUT" else argument for argument in arguments))
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert kept.read_text() == "what somebody wrote"
    assert not list(tmp_path.glob("*.zip"))


def test_a_sweep_that_can_do_nothing_fails(cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GCDBENCH_DATA", "HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))
    result = cli("sweep", "errors", "--seeds", "0")
    assert "2 runs cannot be done here" in result.stdout
    assert result.exit_code == 1


def test_scores_may_be_written_with_spaces(cli, runs: Path) -> None:
    result = cli("table", "errors", "--scores", "all, old", "--format", "csv")
    assert result.exit_code == 0
    assert "simgcd,kvasir,,old,2," in result.stdout


def test_an_export_takes_every_run_that_was_named(cli, runs: Path, tmp_path: Path) -> None:
    paths = sorted(path.parent for path in runs.rglob("run.json"))
    result = cli("export", tmp_path / "a.zip", paths[0].name, paths[1].resolve())
    assert "Packed 2 run(s)" in result.stdout
    edit_sealed(paths[0] / "run.json", lambda record: record.update(status="failed"))
    result = cli("export", tmp_path / "b.zip", paths[0].name, paths[1].name)
    assert result.exit_code == 2
    assert f"Run '{paths[0].name}' is not finished" in result.stderr
    assert not (tmp_path / "b.zip").exists()


def test_a_run_without_readable_scores_is_rescored(cli, runs: Path) -> None:
    broken = sorted(runs.rglob("scores.json"))[0]
    before = json.loads(broken.read_text())["sets"]["transductive"]["scores"]
    broken.write_text("{}")
    result = cli("rescore")
    assert "Rescored 3 run(s)" in result.stdout
    assert json.loads(broken.read_text())["sets"]["transductive"]["scores"] == before


def test_a_cost_that_could_not_be_measured_fails_the_sweep(
    cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = tmp_path / "toll.toml"
    suite.write_text(
        'title = "Toll"\nkind = "cost"\nscores = ["gflops"]\n[presets.smoke]\nseeds = [0]\nstand_in = "always"\n'
        '[[columns]]\ndataset = "kvasir"\n[[rows]]\nmethod = "simgcd"\n'
    )
    request = Request(method="simgcd", dataset="phantom", protocol="half", preset="smoke", seed=0)
    write_fake_run(tmp_path / "runs", FakeRun(request=request), PluginManager(points=[]))
    monkeypatch.setattr(
        "gcdbench.reporting.suites.costs.measure_runs", lambda *paths, **how: {"abc": "its model is gone"}
    )
    result = cli("sweep", suite, "--preset", "smoke")
    assert "run abc could not be measured: its model is gone" in result.stderr
    assert result.exit_code == 1
