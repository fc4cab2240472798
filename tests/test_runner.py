"""Runs through the whole spine with a third party's method, dataset and metric."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from gcdbench.core.errors import ConfigError, DataError, GCDBenchError, TrainingError
from gcdbench.plugins.manager import PluginManager, get_manager
from gcdbench.runs.attempt import Attempt
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.evaluate import Rescored, rescore
from gcdbench.runs.execution import Execution, prepare_data
from gcdbench.runs.placement import Placement
from gcdbench.runs.plan import make_plan
from gcdbench.runs.predictions import load_predictions
from gcdbench.runs.record import DONE, FAILED, INTERRUPTED
from gcdbench.runs.request import Request
from gcdbench.runs.runner import execute
from gcdbench.splits import manifest
from gcdbench.testing.stored import edit_sealed

pytestmark = pytest.mark.usefixtures("example_plugin")
SMALL = {"image_size": "32"}


def run(tmp_path: Path, *, seed: int = 0, overrides: dict[str, object] | None = None, **placement: object):
    request = Request(method="nearest-mean", dataset="stripes", seed=seed, overrides={**SMALL, **(overrides or {})})
    manager = get_manager()
    where = Placement(runs=tmp_path / "runs", workers=1, **placement)  # type: ignore[arg-type]
    return execute(Execution(plan=make_plan(request, manager), placement=where, manager=manager))


def changes(found: Rescored) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return found.changed, found.added


def clusters(directory: RunDirectory) -> np.ndarray:
    return load_predictions(directory.record(), "transductive").cluster


def test_a_run_is_stored_scored_and_reused(tmp_path: Path) -> None:
    first = run(tmp_path)
    assert not first.reused
    assert first.directory.status() == DONE
    scores = first.scores.sets["transductive"].scores
    errors = [scores[k] for k in ("true_old_confusion", "false_new", "false_old", "true_new_confusion")]
    assert scores["all"] + sum(errors) == pytest.approx(100.0)
    assert scores["purity"] >= scores["all"]
    again = run(tmp_path)
    assert again.reused
    assert again.directory.path == first.directory.path
    assert again.scores == first.scores


def test_what_is_in_the_identity_and_what_is_not(tmp_path: Path) -> None:
    first = run(tmp_path)
    same = {"workers": 2, "threads": 1}
    request = Request(method="nearest-mean", dataset="stripes", overrides=SMALL)
    manager = get_manager()
    other_place = execute(
        Execution(
            plan=make_plan(request, manager), placement=Placement(runs=tmp_path / "runs", **same), manager=manager
        )
    )  # type: ignore[arg-type]
    assert other_place.reused
    for different in (
        {"seed": 1},
        {"overrides": {"quantile": "0.4"}},
        {"overrides": {"protocol.label_fraction": "0.3"}},
    ):
        assert run(tmp_path, **different).directory.path != first.directory.path  # type: ignore[arg-type]
    identity = json.dumps(first.record.identity)
    assert str(tmp_path) not in identity


def test_a_failed_run_says_why_and_runs_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gcdbench_example.method import NearestMean

    def fail(self: object, data: object) -> None:
        raise ValueError("no light in the tunnel")

    with monkeypatch.context() as patch:
        patch.setattr(NearestMean, "fit", fail)
        with pytest.raises(ValueError, match="tunnel"):
            run(tmp_path)
    [path] = (tmp_path / "runs" / "stripes" / "nearest-mean").iterdir()
    failed = RunDirectory(path)
    assert failed.status() == FAILED
    assert "no light in the tunnel" in failed.record().error
    assert "Traceback" in failed.record().traceback
    result = run(tmp_path)
    assert not result.reused
    assert result.directory.path == path
    assert result.directory.status() == DONE


@pytest.mark.parametrize("fault", ["order", "missing", "negative"])
def test_a_method_must_answer_for_what_it_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    from gcdbench_example.method import NearestMean

    original = NearestMean.predict

    def wrong(self: NearestMean, images):
        p = original(self, images)
        if fault == "order":
            return dataclasses.replace(p, ids=p.ids[::-1])
        if fault == "missing":
            return dataclasses.replace(p, cluster=p.cluster[:-1])
        return dataclasses.replace(p, cluster=p.cluster - 100)

    monkeypatch.setattr(NearestMean, "predict", wrong)
    with pytest.raises(GCDBenchError):
        run(tmp_path)


def test_canary_hidden_labels_change_no_prediction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shuffle the labels of D_u before the run: predictions stay the same to the last bit, scores do not."""
    honest = run(tmp_path / "honest")
    original = manifest.make_split

    def shuffled(**arguments):
        split = original(**arguments)
        hidden = split.ids(manifest.UNLABELLED)
        labels = split.labels.copy()
        labels[hidden] = np.random.default_rng(5).permutation(labels[hidden])
        return dataclasses.replace(split, labels=labels)

    monkeypatch.setattr("gcdbench.runs.execution.make_split", shuffled)
    canary = run(tmp_path / "canary")
    assert np.array_equal(clusters(honest.directory), clusters(canary.directory))
    assert honest.scores.sets != canary.scores.sets


def _write_folder(root: Path, class_names: list[str], file_name: str) -> None:
    from gcdbench_example.dataset import COLOURS, decode, raw
    from PIL import Image

    for index in range(len(COLOURS) * 12):
        folder = root / class_names[index // 12]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(decode(raw(index))).save(folder / file_name.format(index=index, other=999 - index))


def test_canary_names_change_no_prediction(tmp_path: Path) -> None:
    """Rename files and class folders so that they say nothing: predictions stay the same to the last bit."""
    _write_folder(
        tmp_path / "telling", ["a-red", "b-green", "c-blue", "d-yellow", "e-pink", "f-cyan"], "img{index}.png"
    )
    _write_folder(tmp_path / "mute", [f"class-{i}" for i in range(6)], "{other}.png")
    manager = get_manager()
    found = []
    for name in ("telling", "mute"):
        request = Request(method="nearest-mean", dataset=f"folder:{tmp_path / name}", overrides=SMALL)
        placement = Placement(runs=tmp_path / f"runs-{name}", workers=1)
        found.append(
            clusters(
                execute(Execution(plan=make_plan(request, manager), placement=placement, manager=manager)).directory
            )
        )
    assert np.array_equal(*found)


def test_one_image_in_two_classes_is_refused_unless_accepted(tmp_path: Path) -> None:
    folder = tmp_path / "dirty"
    _write_folder(folder, [f"class-{i}" for i in range(6)], "{index}.png")
    shutil.copy(folder / "class-0" / "0.png", folder / "class-5" / "copy.png")
    manager = get_manager()
    request = Request(method="nearest-mean", dataset=f"folder:{folder}", overrides=SMALL)
    plan = make_plan(request, manager)
    with pytest.raises(DataError, match="same image is in several classes"):
        execute(Execution(plan=plan, placement=Placement(runs=tmp_path / "runs", workers=1), manager=manager))
    with pytest.raises(DataError, match="same image is in several classes"):  # as tune-lr and estimate-k ask for it
        prepare_data(Execution(plan=plan, placement=Placement(workers=1), manager=manager))
    result = execute(
        Execution(
            plan=plan, placement=Placement(runs=tmp_path / "runs", workers=1, accept_data_issues=True), manager=manager
        )
    )
    assert "copy.png" in result.record.accepted_data_issues[0]


def test_rescore_changes_nothing_and_adds_a_metric_installed_later(tmp_path: Path, example_plugin: Path) -> None:
    before = PluginManager(points=[])
    with_metric = PluginManager(points=[], files=[example_plugin])
    result = run(tmp_path)
    assert changes(rescore(result.directory, with_metric)) == ((), ())

    def without_its_scores(scores):
        for entry in scores["sets"].values():
            del entry["scores"]["purity"], entry["scores"]["fragments"]

    edit_sealed(result.directory.path / "scores.json", without_its_scores)
    assert changes(rescore(result.directory, before)) == ((), ())
    added = ("transductive.fragments", "transductive.purity")
    assert changes(rescore(result.directory, with_metric)) == ((), added)


def test_a_third_partys_broken_metric_is_reported_beside_the_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gcdbench_example.metric

    monkeypatch.setattr(gcdbench_example.metric, "purity", lambda *a: {"purity": float("nan")})
    scores = run(tmp_path).scores
    assert "purity" not in scores.sets["transductive"].scores
    assert "leave undefined values out" in scores.metric_errors["purity"]


def test_a_third_partys_metric_can_neither_take_a_key_of_ours_nor_change_what_others_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gcdbench_example.metric

    honest = run(tmp_path / "honest").scores.sets["transductive"].scores
    spec = next(spec for spec in get_manager().specs("metrics") if spec.name == "purity")
    registry = get_manager()._registries["metrics"]
    first = dataclasses.replace(spec, name="aaa")  # before ours in the alphabet
    monkeypatch.setitem(registry, "aaa", dataclasses.replace(registry["purity"], spec=first))
    monkeypatch.setattr(gcdbench_example.metric, "purity", lambda *a: {"all": 100.0})
    scores = run(tmp_path / "taken").scores
    assert scores.sets["transductive"].scores["all"] == honest["all"]
    assert "is taken" in scores.metric_errors["aaa"]

    def sorting(y_true, cluster, is_old, anchored):
        y_true.sort()
        return {}

    monkeypatch.setattr(gcdbench_example.metric, "purity", sorting)
    scores = run(tmp_path / "sorted").scores
    assert scores.sets["transductive"].scores["all"] == honest["all"]
    assert "read-only" in scores.metric_errors["aaa"]


def test_rescore_says_which_scores_go_with_their_metric(tmp_path: Path) -> None:
    result = run(tmp_path)
    gone = ("transductive.fragments (gone)", "transductive.purity (gone)")
    assert changes(rescore(result.directory, PluginManager(points=[]))) == (gone, ())


def test_a_run_that_another_process_finished_meanwhile_is_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, others = RunDirectory.writing, []

    def slow_to_get_the_lock(self: RunDirectory):
        if not others:
            others.append(None)
            others[0] = run(tmp_path)
        return original(self)

    monkeypatch.setattr(RunDirectory, "writing", slow_to_get_the_lock)
    result = run(tmp_path)
    assert result.reused
    assert not others[0].reused


def test_a_method_that_ends_the_process_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gcdbench_example.method import NearestMean

    def leave(self: object, data: object) -> None:
        raise SystemExit(0)

    monkeypatch.setattr(NearestMean, "fit", leave)
    with pytest.raises(TrainingError, match="ended the process"):
        run(tmp_path)
    [path] = (tmp_path / "runs" / "stripes" / "nearest-mean").iterdir()
    assert RunDirectory(path).status() == FAILED


@pytest.mark.parametrize("problem", [RuntimeError("a typo"), KeyboardInterrupt()])
def test_a_second_try_that_fails_leaves_the_first_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: BaseException
) -> None:
    from gcdbench_example.method import NearestMean

    first = run(tmp_path)
    record, found = first.directory.record(), clusters(first.directory)

    def broken(self: object, data: object) -> None:
        raise problem

    with monkeypatch.context() as patch:
        patch.setattr(NearestMean, "fit", broken)
        with pytest.raises(type(problem)):
            run(tmp_path, force=True)
    assert first.directory.record() == record
    assert first.directory.record().scores == first.scores
    np.testing.assert_array_equal(clusters(first.directory), found)
    assert run(tmp_path).reused
    again = run(tmp_path, force=True)
    assert not again.reused
    assert again.scores == first.scores
    assert not first.directory.next_dir.exists()


def test_a_killed_second_try_does_not_cost_the_first_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gcdbench_example.method import NearestMean

    first = run(tmp_path)
    found = clusters(first.directory)
    with monkeypatch.context() as patch:
        patch.setattr(Attempt, "fail", lambda self, error, trace: None)  # killed: nothing is cleaned up
        patch.setattr(NearestMean, "fit", lambda self, data: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(tmp_path, force=True)
    assert first.directory.status() == DONE
    assert run(tmp_path).reused
    np.testing.assert_array_equal(clusters(first.directory), found)


def test_ctrl_c_in_a_method_leaves_an_interrupted_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gcdbench_example.method import NearestMean

    def interrupted(self: object, data: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(NearestMean, "fit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path)
    [path] = (tmp_path / "runs" / "stripes" / "nearest-mean").iterdir()
    assert RunDirectory(path).record().status == INTERRUPTED
    assert not run(tmp_path).reused


def test_a_split_of_another_laboratory_can_be_used(tmp_path: Path) -> None:
    ours = run(tmp_path)
    request = Request(method="nearest-mean", dataset="stripes", overrides={**SMALL, "protocol.split_seed": "7"})
    manager = get_manager()
    placement = Placement(runs=tmp_path / "runs", workers=1)
    theirs = prepare_data(Execution(plan=make_plan(request, manager), placement=placement, manager=manager)).split
    file = tmp_path / "theirs.tsv"
    file.write_text(theirs.to_text())
    given = dataclasses.replace(request, overrides=SMALL, split=str(file))
    result = execute(Execution(plan=make_plan(given, manager), placement=placement, manager=manager))
    assert result.record.split_sha256 == theirs.sha
    assert result.directory.path != ours.directory.path
    with pytest.raises(ConfigError, match="its own protocol"):
        make_plan(dataclasses.replace(given, protocol="half"), manager)
    other = dataclasses.replace(theirs, sha256=tuple("0" * 63 + str(i % 10) for i in range(len(theirs.sha256))))
    file.write_text(other.to_text())
    with pytest.raises(DataError, match="not for the images on this machine"):
        execute(Execution(plan=make_plan(given, manager), placement=placement, manager=manager))
