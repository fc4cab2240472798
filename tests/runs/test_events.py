"""Events: typed where gcdbench says them, whole where a plugin does, and readable like a dictionary for one release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcdbench.core.errors import PluginError
from gcdbench.plugins.manager import PluginManager, get_manager
from gcdbench.runs.events import (
    EpochEnd,
    Event,
    JobEnded,
    Note,
    OtherEvent,
    Progress,
    StepProgress,
    decode_event,
    encode_event,
    make_event,
)
from gcdbench.runs.execution import Execution
from gcdbench.runs.placement import Placement
from gcdbench.runs.plan import make_plan
from gcdbench.runs.record import DONE, RUNNING, Record, Scores
from gcdbench.runs.request import Request
from gcdbench.runs.runner import execute

LOSSES = {"cls": 0.5, "rep": 1}
STEP = {
    "type": "progress",
    "epoch": 1,
    "epochs": 3,
    "step": 2,
    "steps": 4,
    "losses": LOSSES,
    "images_per_s": 9,
    "eta_s": 1,
}
END = {"type": "epoch", "epoch": 1, "epochs": 3, "losses": LOSSES, "lr": 0.1}


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"type": "progress", "task": "decoding", "done": 1, "total": 2}, Progress),
        (STEP, StepProgress),
        (END, EpochEnd),
        ({"type": "note", "message": "hello"}, Note),
        ({"type": "outcome", "path": "x"}, JobEnded),
        ({"type": "clustering", "k": 8}, OtherEvent),
        ({**END, "losses": {"cls": "high"}}, OtherEvent),
        ({**END, "epoch": True}, OtherEvent),
        ({"type": "note"}, OtherEvent),
        ({"type": ""}, OtherEvent),
    ],
)
def test_what_was_said_becomes_an_event_and_loses_nothing(said: dict[str, Any], kind: type[Event]) -> None:
    event = make_event({**said, "time": 12.5, "own": [1]})
    assert type(event) is kind
    assert event.time == 12.5
    table = event.to_table()
    assert {key: table[key] for key in said} == said
    assert table["own"] == [1]
    assert decode_event(encode_event(event)) == event


@given(st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.lists(st.integers())), st.text())
def test_any_mapping_with_a_type_is_an_event(said: dict[str, Any], name: str) -> None:
    event = make_event({**said, "type": name})
    assert event.type == name
    written = {key: value for key, value in said.items() if key not in ("type", "time")}
    assert {key: event.to_table()[key] for key in written} == written


@pytest.mark.parametrize("said", [{"message": "no type"}, {"type": 3}, "text", None])
def test_what_is_no_event_is_refused_with_a_sentence(said: Any) -> None:
    with pytest.raises(PluginError, match="not an event"):
        make_event(said)


@pytest.mark.parametrize("line", ["", "12", "[]", "{}", "loading…", "[" * 100_000, '{"type": 1}'])
def test_lines_that_a_library_printed_are_no_events(line: str) -> None:
    assert decode_event(line) is None


def test_an_event_reads_like_a_dictionary_for_one_release() -> None:
    event = make_event(END)
    with pytest.warns(DeprecationWarning, match="EpochEnd"):
        assert event["losses"] == LOSSES
    with pytest.warns(DeprecationWarning, match="to_table"):
        assert event.get("type") == "epoch"
    with pytest.warns(DeprecationWarning, match="next release"):
        assert dict(event)["epoch"] == 1
    with pytest.warns(DeprecationWarning, match="next release"):
        assert "message" not in event


OBSERVER = """
import json

from gcdbench.plugins import hookimpl

seen = []


@hookimpl
def gcdbench_run_started(run):
    seen.append(("started", run, None))


@hookimpl
def gcdbench_run_event(run, event):
    seen.append(("event", run, event))


@hookimpl
def gcdbench_run_finished(run, scores):
    seen.append(("finished", run, scores))
    raise RuntimeError("an observer that is broken")


@hookimpl
def gcdbench_run_failed(run, error):
    seen.append(("failed", run, error))
"""


@pytest.fixture
def observed(tmp_path: Path, example_plugin: Path) -> tuple[PluginManager, list[tuple[str, Any, Any]]]:
    import sys

    file = tmp_path / "observer_of_runs.py"
    file.write_text(OBSERVER)
    manager = PluginManager(points=[], files=[example_plugin, file])
    [module] = [module for name, module in sys.modules.items() if name.endswith("observer_of_runs")]
    return manager, module.seen


def run(manager: PluginManager, runs: Path, **more: Any) -> Any:
    request = Request(method="nearest-mean", dataset="stripes", overrides={"image_size": "32"})
    placement = Placement(runs=runs, workers=1, **more)
    return execute(Execution(plan=make_plan(request, manager), placement=placement, manager=manager))


def test_observers_are_given_records_and_events(
    tmp_path: Path, observed: tuple[PluginManager, list[tuple[str, Any, Any]]]
) -> None:
    manager, seen = observed
    result = run(manager, tmp_path / "runs")
    assert [what for what, _, _ in seen] == ["started", "finished"]
    (_, started, _), (_, finished, scores) = seen
    assert isinstance(started, Record)
    assert started.status == RUNNING
    assert isinstance(finished, Record)
    assert finished.status == DONE
    assert finished == result.record
    assert isinstance(scores, Scores)
    assert scores == result.scores == finished.scores
    with pytest.warns(DeprecationWarning, match="Record"):
        assert finished["run_id"] == result.directory.path.name
    with pytest.warns(DeprecationWarning, match="Scores"):
        assert scores["sets"]["transductive"]["scores"] == scores.sets["transductive"].scores
    [failure] = result.record.events
    assert "an observer that is broken" in failure.error


def test_observers_of_a_repetition_and_of_a_failure(
    tmp_path: Path,
    observed: tuple[PluginManager, list[tuple[str, Any, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manager, seen = observed
    first = run(manager, tmp_path / "runs")
    seen.clear()
    method = manager.get("methods", "nearest-mean").load()

    def broken(self: object, data: object) -> None:
        raise ValueError("no luck")

    with monkeypatch.context() as patch:
        patch.setattr(method, "fit", broken)
        with pytest.raises(ValueError, match="no luck"):
            run(manager, tmp_path / "runs", force=True)
    assert [what for what, _, _ in seen] == ["started", "failed"]
    assert seen[1][1].error == "ValueError: no luck"
    assert isinstance(seen[1][2], ValueError)
    seen.clear()
    again = run(manager, tmp_path / "runs", force=True)
    assert seen[-1][1] == again.record
    assert seen[-1][1].path == first.directory.path
    assert seen[-1][1].scores == first.scores


def test_what_a_method_logs_is_stored_and_given_to_the_listener(
    tmp_path: Path, example_plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = get_manager()
    method = manager.get("methods", "nearest-mean").load()
    original = method.fit

    def talkative(self: Any, data: object) -> None:
        self.ctx.log({"type": "note", "message": "hello"})
        self.ctx.log({"type": "own", "value": 3})
        self.ctx.log({"type": "progress", "task": "thinking", "done": 1, "total": 2})
        original(self, data)

    def remember(self: Any, config: object, task: object, ctx: object) -> None:
        self.ctx = ctx
        begin(self, config, task, ctx)

    begin = method.__init__
    monkeypatch.setattr(method, "fit", talkative)
    monkeypatch.setattr(method, "__init__", remember)
    heard: list[Event] = []
    request = Request(method="nearest-mean", dataset="stripes", overrides={"image_size": "32"})
    execution = Execution(
        plan=make_plan(request, manager),
        placement=Placement(runs=tmp_path / "runs", workers=1),
        manager=manager,
        listener=heard.append,
    )
    record = execute(execution).record
    stored = [event for event in record.events if event.type != "begun"]
    assert [event.type for event in stored] == ["note", "own"]  # progress is shown, not stored
    assert all(event.time for event in record.events)
    assert [event.type for event in heard if event.type in ("note", "own")] == ["note", "own"]
    assert any(isinstance(event, Progress) and event.task == "thinking" for event in heard)
    lines = (record.path / "events.jsonl").read_text().splitlines()
    assert json.loads(lines[-1]) == {"type": "own", "value": 3, "time": stored[-1].time}
