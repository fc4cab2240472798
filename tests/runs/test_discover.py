"""Discovery on one's own images: what it writes, that it is the run it would be with truth, and what it refuses."""

from __future__ import annotations

import csv
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from gcdbench.runs.index import load_runs
from gcdbench.runs.predictions import load_predictions
from gcdbench.runs.reader import read_record
from gcdbench.splits.split_file import read_split
from tests.runs.own_images import NEW, OLD, SMALL, OwnImages, divide, draw_classes

Cli = Callable[..., Result]


@pytest.fixture
def own(cli: Cli, tmp_path: Path) -> OwnImages:
    whole = draw_classes(tmp_path / "whole")
    target = tmp_path / "split.tsv"
    result = cli("data", "split", "export", f"folder:{whole}", "-o", target, "--old", ",".join(OLD))
    assert result.exit_code == 0, result.output
    split = read_split(target)
    roles = dict(zip(split.sha256, np.array(["labelled", "unlabelled"])[split.roles], strict=True))
    return divide(whole, roles, tmp_path / "own")


def discover(cli: Cli, own: OwnImages, out: Path, *more: object) -> dict:
    sides = ("--labelled", own.labelled, "--unlabelled", own.unlabelled)
    result = cli("discover", *sides, "-o", out, *SMALL, "--json", *more)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("method", ["simgcd", "kmeans"])
def test_with_the_truth_it_is_the_run_on_the_same_split(cli: Cli, own: OwnImages, tmp_path: Path, method: str) -> None:
    out = tmp_path / "out"
    told = discover(cli, own, out, "--k", 4, "-m", method)
    assert told["sets"] == {}
    blind = read_record(Path(told["path"]))
    assert blind.status == "done"
    assert blind.scores is not None
    assert not blind.scores.sets

    scored = discover(cli, own, out, "--k", 4, "-m", method, "--truth", own.truth)
    assert scored["reused"]
    assert scored["run"] == told["run"]
    run = cli("run", "-d", f"folder:{own.whole}", "-m", method, "--old", ",".join(OLD), *SMALL, "--json", "--seed", 0)
    assert run.exit_code == 0, run.output
    expected = json.loads(run.stdout)
    assert scored["sets"] == expected["sets"]
    mine, other = read_record(Path(scored["path"])), read_record(Path(expected["path"]))
    assert mine.split.old_classes == OLD
    assert mine.split.new_classes == NEW
    a, b = load_predictions(mine, "transductive"), load_predictions(other, "transductive")
    for name, array in b.arrays().items():
        assert np.array_equal(a.arrays()[name], array), name
    assert cli("verify", "--runs", mine.path.parents[2]).exit_code == 0
    assert cli("rescore", mine.run_id).output.startswith("Rescored 1 run(s): 0 score(s) changed")


def test_what_it_writes(cli: Cli, own: OwnImages, tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = discover(cli, own, out, "--k", 5)
    rows = read(out / "predictions.csv")
    assert {row["path"] for row in rows} == {str(path) for path in own.unlabelled.rglob("*.png")}
    for row in rows:
        cluster = int(row["cluster"])
        assert row["kind"] == ("known" if cluster < 2 else "new")
        assert row["name"] == (OLD[cluster] if cluster < 2 else f"cluster {cluster}")
        assert row["nearest_known_class"] in OLD
        assert row["unlike"] in ("yes", "no", "")  # so few images may not be enough to tell
    page = (out / "gallery.html").read_text(encoding="utf-8")
    assert "The number of clusters was given" in page
    assert tomllib.loads((out / "names.toml").read_text()) == {"run": told["run"]}
    assert (Path(told["model"]) / "model.json").is_file()
    [entry] = load_runs(Path(told["path"]).parents[2])
    assert entry.status == "done"
    assert not {"all", "old", "new"} & set(entry.scores)
    for verb in (("status",), ("table",), ("show", told["run"]), ("verify",), ("rescore",)):
        result = cli(*verb)
        assert result.exit_code == 0, (verb, result.output)


def test_without_k_it_is_estimated_and_said(cli: Cli, own: OwnImages, tmp_path: Path) -> None:
    told = discover(cli, own, tmp_path / "out")
    assert told["k_estimated"]
    assert told["k"] >= len(OLD)
    assert "was estimated, not given" in (tmp_path / "out" / "gallery.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("estimate", "hinted"), [(len(OLD), True), (len(OLD) + 1, False)])
def test_an_estimate_without_room_for_new_classes_is_no_last_word(
    cli: Cli, own: OwnImages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, estimate: int, hinted: bool
) -> None:
    monkeypatch.setattr("gcdbench.methods.algorithms.estimate_k.estimate_k", lambda *_, **__: estimate)
    sides = ("--labelled", own.labelled, "--unlabelled", own.unlabelled)
    result = cli("discover", *sides, "-o", tmp_path / "out", *SMALL, "-m", "kmeans")
    assert result.exit_code == 0, result.output
    assert f"the number of clusters, {estimate}, was estimated" in result.output
    assert ("for example --k" in result.output) == hinted


def test_how_long_it_takes_is_said_first_and_not_promised_again(cli: Cli, own: OwnImages, tmp_path: Path) -> None:
    sides = ("--labelled", own.labelled, "--unlabelled", own.unlabelled, "-o", tmp_path / "out", "--k", 4)
    loud = [option for option in SMALL if option != "-q"]
    first, again = (cli("discover", *sides, *loud) for _ in range(2))
    assert first.exit_code == again.exit_code == 0
    told = r"; (less than a minute|about \d+ s)"  # 32 small images, one epoch
    assert re.search(told + "$", first.stdout.splitlines()[0])
    assert re.search(told + ", unless done before on these images$", again.stdout.splitlines()[0])
    assert "nothing was trained" in again.stdout


def test_empty_labels_in_a_list_are_unlabelled(cli: Cli, own: OwnImages, tmp_path: Path) -> None:
    by_folders = discover(cli, own, tmp_path / "out", "--k", 4)
    listed = tmp_path / "all.csv"
    with listed.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("path", "label"))
        writer.writerows((path, path.parent.name) for path in own.labelled.rglob("*.png"))
        writer.writerows((path, "") for path in own.unlabelled.rglob("*.png"))
    result = cli("discover", "--labelled", listed, "--k", 4, "-o", tmp_path / "other", *SMALL, "--json")
    assert result.exit_code == 0, result.output
    again = json.loads(result.stdout)
    assert again["run"] == by_folders["run"]
    assert again["reused"]


def test_labelled_images_in_the_pile_count_once(cli: Cli, own: OwnImages, tmp_path: Path) -> None:
    plain = discover(cli, own, tmp_path / "out", "--k", 4)
    sides = ("--labelled", own.labelled, "--unlabelled", own.labelled.parent)
    result = cli("discover", *sides, "--k", 4, "-o", tmp_path / "out", *SMALL, "--json")
    assert json.loads(result.stdout)["run"] == plain["run"]


def test_copies_of_labelled_images_are_said(cli: Cli, own: OwnImages, tmp_path: Path) -> None:
    some = next(own.labelled.rglob("*.png"))
    (own.unlabelled / "another name.png").write_bytes(some.read_bytes())
    sides = ("--labelled", own.labelled, "--unlabelled", own.unlabelled, "-o", tmp_path / "out")
    result = cli("discover", *sides, "--k", 4, "-m", "kmeans", *(word for word in SMALL if word != "-q"))
    assert result.exit_code == 0, result.output
    assert "copies of labelled ones: 1" in result.output


def test_refusals(cli: Cli, own: OwnImages, tmp_path: Path) -> None:
    sides = ("--labelled", own.labelled, "--unlabelled", own.unlabelled, *SMALL, "-o", tmp_path / "out")
    few = cli("discover", *sides, "--k", 2)
    assert few.exit_code
    assert "no room for a new class" in few.stderr
    many = cli("discover", *sides, "--k", 500)
    assert many.exit_code
    assert "more clusters than there are images" in many.stderr
    alone = cli("discover", "--labelled", own.labelled, *SMALL)
    assert "nothing to discover" in alone.stderr
    protocol = cli("discover", *sides, "--set", "protocol.label_fraction=0.2")
    assert "protocol" in protocol.stderr
    half = tmp_path / "half.csv"
    half.write_text("\n".join(own.truth.read_text().splitlines()[:9]).replace("pile/", f"{own.unlabelled}/"))
    partial = cli("discover", *sides, "--k", 4, "--truth", half)
    assert partial.exit_code
    assert "8 of the 24" in partial.stderr
    nothing = cli("discover", "--labelled", tmp_path / "none", *SMALL)
    assert nothing.exit_code
    other = next(own.labelled.rglob("*.png"))
    wrong = next(path for path in own.labelled.iterdir() if path != other.parent) / "copy.png"
    wrong.write_bytes(other.read_bytes())
    twice = cli("discover", *sides, "--k", 4)
    assert twice.exit_code
    assert "several classes" in twice.stderr


def test_nothing_of_somebody_else_is_replaced(cli: Cli, own: OwnImages, tmp_path: Path) -> None:
    sides = ("--labelled", own.labelled, "--unlabelled", own.unlabelled, *SMALL, "--k", 4, "-m", "kmeans")
    (tmp_path / "file").write_text("text")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        refused = cli("discover", *sides, "-o", place)
        assert refused.exit_code
        assert not (tmp_path / "runs").exists()  # it is said before anything is trained
    out = tmp_path / "out"
    out.mkdir()
    (out / "predictions.csv").write_text("patient,finding\n")
    refused = cli("discover", *sides, "-o", out)
    assert refused.exit_code
    assert "not replaced" in refused.stderr
    assert (out / "predictions.csv").read_text() == "patient,finding\n"
    (out / "predictions.csv").unlink()
    work = 'run = "another"\n[clusters.4]\nname = "a week of work"\n'
    for number in (1, 2):
        (out / "names.toml").write_text(work)
        told = discover(cli, own, out, "--k", 4, "-m", "kmeans")
        assert (out / f"names.{number}.toml").read_text() == work
        assert tomllib.loads((out / "names.toml").read_text()) == {"run": told["run"]}
    filled = (out / "names.toml").read_text() + '\n[clusters.3]\nname = "ulcer"\n'
    (out / "names.toml").write_text(filled)
    discover(cli, own, out, "--k", 4, "-m", "kmeans")
    assert (out / "names.toml").read_text() == filled
