"""Observers hear what happens, write it where others look for it, and stop nothing."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from click.testing import Result

from gcdbench.core.errors import ConfigError, UnknownName
from gcdbench.plugins.manager import get_manager
from gcdbench.runs.executors.base import Job
from gcdbench.runs.executors.wire import decode_job, encode_job
from gcdbench.runs.observers.figures import figures_of_event, figures_of_scores
from gcdbench.runs.observers.tensorboard import TensorBoard
from gcdbench.runs.observers.watch import Watch, require_observers
from gcdbench.runs.placement import Placement
from gcdbench.runs.request import Request

DOCS = Path(__file__).resolve().parents[2] / "docs" / "write" / "observer.md"
RUN = ("run", "-d", "phantom", "--preset", "smoke", "--dataset-set", "n_per_class=6", "--set", "image_size=32", "-q")
TRAINED = (*RUN, "-m", "simgcd", "--set", "weights=none", "--set", "epochs=2", "--set", "batch_size=16")
Cli = Callable[..., Result]


def epoch(number: int, **losses: float) -> dict[str, Any]:
    return {"type": "epoch", "epoch": number, "losses": losses, "lr": 0.1, "images_per_s": 50.0}


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard itself reads from a folder."""
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    accumulator = reader.EventAccumulator(str(folder))
    accumulator.Reload()
    return {
        tag: [(event.step, event.value) for event in accumulator.Scalars(tag)] for tag in accumulator.Tags()["scalars"]
    }


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Make a plugin file known to gcdbench."""

    def use(source: str) -> None:
        path = tmp_path / "watching.py"
        path.write_text(source)
        monkeypatch.setenv("GCDBENCH_PLUGINS", str(path))
        get_manager.cache_clear()

    yield use
    get_manager.cache_clear()


def test_figures_have_the_names_of_a_dashboard() -> None:
    figures = figures_of_event(epoch(3, cls=0.5, rep=1.0))
    assert figures is not None
    assert figures.step == 4
    assert figures.values == {
        "train/loss": 1.5, "train/loss/cls": 0.5, "train/loss/rep": 1.0, "train/lr": 0.1, "train/images_per_s": 50.0,
    }  # fmt: skip
    assert figures_of_event({"type": "note", "message": "hello"}) is None
    sets = {"transductive": {"scores": {"all": 60.0, "old": 70.0, "nmi": 40.0, "new": None}}}
    assert figures_of_scores({"sets": sets}) == {"eval/All": 60.0, "eval/Old": 70.0, "eval/nmi": 40.0}
    assert figures_of_scores({"sets": {"inductive": {"scores": {"new": 5.0}}}}) == {"test/New": 5.0}


def test_tensorboards_own_reader_shows_a_run(cli: Cli, tmp_path: Path) -> None:
    """Every loss that the run wrote to its events, and its scores."""
    result = cli(*TRAINED, "--observe", "tensorboard")
    assert result.exit_code == 0, result.output
    (run,) = (tmp_path / "runs").glob("*/*/*")
    shown = scalars(run / "tensorboard")
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    epochs = [event for event in events if event["type"] == "epoch"]
    assert len(epochs) == 2
    for name in epochs[0]["losses"]:
        expected = [(event["epoch"] + 1, event["losses"][name]) for event in epochs]
        assert shown[f"train/loss/{name}"] == [(step, pytest.approx(value, rel=1e-6)) for step, value in expected]
    assert [step for step, _ in shown["train/lr"]] == [1, 2]
    assert shown["train/images_per_s"][0][1] > 0
    scores = json.loads((run / "scores.json").read_text())["sets"]["transductive"]["scores"]
    for tag, name in (("eval/All", "all"), ("eval/Old", "old"), ("eval/New", "new")):
        assert shown[tag] == [(2, pytest.approx(scores[name], rel=1e-6))]


def test_runs_can_be_collected_in_a_given_folder(cli: Cli, tmp_path: Path) -> None:
    result = cli(*RUN, "-m", "pixels-kmeans", "--observe", f"tensorboard:{tmp_path / 'boards'}")
    assert result.exit_code == 0, result.output
    (run,) = (tmp_path / "runs").glob("*/*/*")
    assert not (run / "tensorboard").exists()
    folder = tmp_path / "boards" / run.relative_to(tmp_path / "runs")
    assert "eval/All" in scalars(folder)


def test_a_resumed_run_replaces_the_steps_that_are_done_again(tmp_path: Path) -> None:
    """Killed after epoch 3 with a checkpoint of epoch 1: what was told of epochs 2 and 3 is told again."""
    first = TensorBoard(tmp_path)
    for number in range(3):
        first.run_event({}, epoch(number, cls=1.0))
    second = TensorBoard(tmp_path)
    for number in range(1, 4):
        second.run_event({}, epoch(number, cls=2.0))
    second.run_failed({}, RuntimeError())
    assert scalars(tmp_path / "tensorboard")["train/loss"] == [(1, 1.0), (2, 2.0), (3, 2.0), (4, 2.0)]


def test_a_sweeps_workers_are_told_who_watches() -> None:
    request = Request(method="kmeans", dataset="phantom")
    job = Job(request=request, placement=Placement(observe=("tensorboard:logs", "mine")))
    assert decode_job(encode_job(job)) == job


FAILING = """
from gcdbench.api import Observer
from gcdbench.plugins import ObserverSpec, hookimpl


class Late(Observer):
    def run_event(self, run, event):
        raise RuntimeError("the board is full")

    def run_finished(self, run, scores):
        (self.directory / "told").touch()


class Early(Observer):
    def __init__(self, directory):
        raise OSError("no connection")


@hookimpl
def gcdbench_observers():
    return [ObserverSpec(name=n, api=2, factory=f"{__name__}:{c}") for n, c in (("late", "Late"), ("early", "Early"))]
"""


def test_an_observer_that_fails_stops_nothing_and_is_told_nothing_more(
    cli: Cli, tmp_path: Path, plugin: Callable[[str], None]
) -> None:
    plugin(FAILING)
    result = cli(*TRAINED, "--observe", "late", "--observe", "early", "--observe", "tensorboard")
    assert result.exit_code == 0, result.output
    (run,) = (tmp_path / "runs").glob("*/*/*")
    assert not (run / "told").exists()
    said = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    failures = [event["error"] for event in said if event["type"] == "observer-failed"]
    assert len(failures) == 2
    assert any("no connection" in text for text in failures)
    assert any("the board is full" in text for text in failures)
    assert "eval/All" in scalars(run / "tensorboard")


def test_who_watches_is_not_part_of_the_identity(cli: Cli, tmp_path: Path) -> None:
    assert cli(*RUN, "-m", "pixels-kmeans").exit_code == 0
    again = cli(*RUN, "-m", "pixels-kmeans", "--observe", "tensorboard")
    assert "Reused" in again.output


def test_unknown_and_uninstalled_observers_are_refused_before_anything_begins(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnknownName, match="did you mean 'tensorboard'"):
        require_observers(("tensorbord",), get_manager())
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="not installed") as caught:
        require_observers(("tensorboard:logs",), get_manager())
    assert "gcdbench[tensorboard]" in str(caught.value.hint)
    for verb in ((*RUN, "-m", "pixels-kmeans"), ("sweep", "medxplore/main", "--preset", "smoke")):
        result = cli(*verb, "--observe", "nobody")
        assert result.exit_code == 2
        assert "nobody" in result.stderr
    assert not (tmp_path / "runs").exists()


def test_observers_are_listed(cli: Cli) -> None:
    assert "tensorboard" in cli("list", "observers").output


class Ledger(ModuleType):
    """A stand-in for a service: whatever is called on it is written down."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*arguments: Any, **options: Any) -> Part:
            self.calls.append((name, arguments, options))
            return Part(self, "")

        return call

    def of(self, name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        return [(arguments, options) for called, arguments, options in self.calls if called == name]


class Part:
    """What a service hands out: its calls are written down, too, with the way to them."""

    def __init__(self, ledger: Ledger, path: str) -> None:
        self._ledger, self._path = ledger, path

    def __getattr__(self, name: str) -> Part:
        return Part(self._ledger, f"{self._path}.{name}")

    def __call__(self, *arguments: Any, **options: Any) -> None:
        self._ledger.calls.append((self._path, arguments, options))


@pytest.fixture
def documented(monkeypatch: pytest.MonkeyPatch, plugin: Callable[[str], None]) -> Callable[[str], Ledger]:
    """Make the observer of that name in docs/write/observer.md known, beside a stand-in for its service."""
    blocks = {
        found[1]: found[0]
        for found in re.finditer(r"(?<=^```python\n)# my_(\w+)/plugin\.py\n.*?(?=^```)", DOCS.read_text(), re.M | re.S)
    }

    def use(name: str) -> Ledger:
        ledger = Ledger(name)
        monkeypatch.setitem(sys.modules, name, ledger)
        plugin(blocks[name])
        return ledger

    return use


def test_the_documented_weights_and_biases_observer(
    cli: Cli, tmp_path: Path, documented: Callable[[str], Ledger]
) -> None:
    wandb = documented("wandb")
    assert cli(*TRAINED, "--observe", "wandb:my-project").exit_code == 0
    (run,) = (tmp_path / "runs").glob("*/*/*")
    ((_, options),) = wandb.of("init")
    assert (options["project"], options["name"]) == ("my-project", run.name)
    logged = wandb.of(".log")
    assert [options["step"] for _, options in logged] == [1, 2]
    assert all("train/loss" in values and "train/lr" in values for ((values,), _) in logged)
    (((scores,), _),) = wandb.of(".summary.update")
    assert "eval/All" in scores
    assert wandb.of(".finish") == [((), {})]


def test_the_documented_mlflow_observer(cli: Cli, tmp_path: Path, documented: Callable[[str], Ledger]) -> None:
    mlflow = documented("mlflow")
    assert cli(*TRAINED, "--observe", "mlflow").exit_code == 0
    (run,) = (tmp_path / "runs").glob("*/*/*")
    assert mlflow.of("start_run") == [((), {"run_name": run.name})]
    steps = [options.get("step") for _, options in mlflow.of("log_metrics")]
    assert steps == [1, 2, None]
    assert "eval/All" in mlflow.of("log_metrics")[-1][0][0]
    assert mlflow.of("end_run") == [((), {})]


@pytest.mark.parametrize(
    ("name", "ending"), [("wandb", (".finish", {"exit_code": 1})), ("mlflow", ("end_run", {"status": "FAILED"}))]
)
def test_the_documented_observers_tell_of_a_failed_run(
    name: str, ending: tuple[str, dict[str, Any]], tmp_path: Path, documented: Callable[[str], Ledger]
) -> None:
    ledger = documented(name)
    watch = Watch([name], get_manager(), tmp_path)
    names = ("run_id", "method", "dataset", "protocol", "backbone", "seed")
    run = SimpleNamespace(identity={}, **dict.fromkeys(names, "x"))
    assert watch.notify("gcdbench_run_started", run=run) == []
    assert watch.notify("gcdbench_run_failed", run=run, error=RuntimeError("no")) == []
    assert ledger.of(ending[0]) == [((), ending[1])]
