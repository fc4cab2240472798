"""What a reader meets first: the finding on the page, All/Old/New and the errors on a card, what tells runs apart."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.report.build import build_report
from gcdbench.reporting.suites.read import load_suite
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.request import Request
from gcdbench.testing.stored import FakeRun, write_fake_run

MANAGER = PluginManager(points=[])
CARD = re.compile(r'<details class="card".*?<summary>(.*?)</summary><div>(.*?)</div></details>', re.S)


def add(runs: Path, method: str, accuracy: float, seed: int = 0, **overrides: object) -> RunDirectory:
    request = Request(method=method, dataset="kvasir", preset="laptop", seed=seed, overrides=overrides)
    return write_fake_run(runs, FakeRun(request=request, accuracy=accuracy), MANAGER)


def cards(runs: Path) -> list[tuple[str, str]]:
    """Head and body of every card."""
    return CARD.findall(build_report(runs, [], MANAGER))


def mean_all(runs: Path, method: str) -> float:
    found = [RunDirectory(path).record().scores for path in runs.glob(f"kvasir/{method}/*")]
    values = [scores.sets["transductive"].scores["all"] for scores in found if scores]
    return sum(values) / len(values)


def plain(html: str) -> str:
    return re.sub(r"<[^>]+>", " ", html)


@pytest.mark.parametrize(("seeds", "shown"), [(2, "the runs do not show"), (7, "sets it apart")])
def test_the_report_opens_with_who_is_first_and_whether_a_test_supports_it(
    seeds: int, shown: str, tmp_path: Path
) -> None:
    for seed in range(seeds):
        add(tmp_path, "simgcd", 0.5, seed)
        add(tmp_path, "legogcd", 0.9, seed)
    page = build_report(tmp_path, [], MANAGER)
    sections = re.findall(r'<section id="([^"]+)"', page)
    assert sections[0] == "finding"
    assert sections.index("counts") > sections.index("all-runs")
    first = re.search(r'<section id="finding".*?<li>(.*?)</li>', page, re.S)
    assert first
    said = first[1]
    assert said.index("legogcd") < said.index("simgcd")
    assert f"{mean_all(tmp_path, 'legogcd'):.1f} %" in said
    assert f"{mean_all(tmp_path, 'simgcd'):.1f} %" in said
    assert f"n = {seeds}" in said
    assert shown in said


def test_a_card_begins_with_the_accuracies_and_the_errors(tmp_path: Path) -> None:
    scores = add(tmp_path, "simgcd", 0.7).record().scores
    assert scores
    values = scores.sets["transductive"].scores
    [(head, body)] = cards(tmp_path)
    assert ", ".join(f"{key.title()} {values[key]:.1f}" for key in ("all", "old", "new")) in head
    first = re.search(r"<table>.*?</table>", body, re.S)
    assert first
    numbers = re.findall(r"<td>([\d.]+)</td>", first[0])
    errors = ("true_old_confusion", "false_new", "false_old", "true_new_confusion")
    assert numbers[:7] == [f"{values[key]:.2f}" for key in ("all", "old", "new", *errors)]
    assert body.index(first[0]) < body.index("<dl>")


def test_runs_that_differ_in_a_setting_are_told_apart_on_cards_and_in_status(
    cli: Callable[..., Result], tmp_path: Path
) -> None:
    usual, small, long = (
        add(tmp_path, "simgcd", 0.7),
        add(tmp_path, "simgcd", 0.7, lr=0.01),
        add(tmp_path, "simgcd", 0.7, epochs=7),
    )
    expected = {usual.path.name: "", small.path.name: "lr=0.01", long.path.name: "epochs=7"}
    heads = [plain(head) for head, _ in cards(tmp_path)]
    lines = cli("status", "--runs", tmp_path).output.splitlines()
    for run, told in expected.items():
        for said in ([head for head in heads if run in head], [line for line in lines if run in line]):
            assert len(said) == 1
            assert set(re.findall(r"\b\w+=\S+", said[0])) == ({told} if told else set())  # and nothing of defaults


def test_a_suite_that_was_asked_for_and_has_no_run_is_missed(tmp_path: Path) -> None:
    add(tmp_path / "runs", "simgcd", 0.7)
    (tmp_path / "other.toml").write_text(
        'title = "Something else"\n[presets.smoke]\nseeds = [0]\n'
        '[[columns]]\ndataset = "phantom"\n[[rows]]\nmethod = "kmeans"\n',
        encoding="utf-8",
    )
    suite = load_suite(tmp_path / "other.toml", MANAGER)
    said = 'No run yet of the suite "Something else"'
    assert said in build_report(tmp_path / "runs", [suite], MANAGER)
    assert said not in build_report(tmp_path / "runs", [suite], MANAGER, fewest_rows=2)  # nobody asked for it
