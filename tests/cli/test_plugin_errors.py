"""An error in somebody's method, metric or dataset as the command line says it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gcdbench.cli.main import main
from gcdbench.plugins.manager import get_manager
from gcdbench.runs.index import load_runs

SOURCE = """
from gcdbench.plugins import MethodSpec, hookimpl


class Mine:
    def __init__(self, config, task, ctx):
        pass

    def fit(self, data):
        int("no number")  # line 10


@hookimpl
def gcdbench_methods():
    return [MethodSpec(name="mine", api=2, factory=__name__ + ":Mine", needs_backbone=False)]
"""


OTHERS = """
from gcdbench.plugins import DatasetSpec, MethodSpec, MetricSpec, hookimpl


def images(request):
    return {}["nothing"]  # line 6


def share(y_true, cluster, is_old, anchored):
    return {"share": 1 / 0}  # line 10


@hookimpl
def gcdbench_datasets():
    return [DatasetSpec(name="mine", api=2, factory=f"{__name__}:images")]


@hookimpl
def gcdbench_metrics():
    return [MetricSpec(name="share", api=2, factory=f"{__name__}:share")]


@hookimpl
def gcdbench_methods():
    return [MethodSpec(name="mine", api=2, factory="not_there.at_all:Mine", needs_backbone=False)]
"""
SMALL = ("--preset", "smoke", "--set", "image_size=32", "--workers", "0", "--quiet")
PHANTOM = ("-d", "phantom", "--dataset-set", "n_per_class=8", *SMALL)
Call = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """``gcdbench run`` with a plugin file of this source: its exit code, and what it said of errors."""

    def call(source: str, *arguments: str) -> tuple[int, str]:
        (tmp_path / "mine.py").write_text(source)
        monkeypatch.setattr(sys, "argv", ["gcdbench", "--plugin-file", str(tmp_path / "mine.py"), "run", *arguments])
        monkeypatch.setenv("GCDBENCH_PLUGINS", "")  # the option changes it
        get_manager.cache_clear()
        try:
            main()
            code = 0
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        said = capsys.readouterr()
        return code, said.out + said.err

    yield call
    get_manager.cache_clear()


def test_an_error_in_a_method_names_its_file_and_line(run: Call, tmp_path: Path) -> None:
    code, said = run(SOURCE, "-m", "mine", *PHANTOM)
    expected = "ValueError: invalid literal for int() with base 10: 'no number' (mine.py, line 10)"
    assert code == 1
    assert expected in said
    [entry] = load_runs(tmp_path / "runs")
    assert entry.problem == expected  # and so does the list of runs


def test_an_error_in_a_metric_names_its_file_and_line(run: Call) -> None:
    code, said = run(OTHERS, "-m", "pixels-kmeans", *PHANTOM)
    assert code == 0, said
    assert "ZeroDivisionError: division by zero (mine.py, line 10)" in said


def test_an_error_in_a_dataset_names_its_file_and_line(run: Call) -> None:
    code, said = run(OTHERS, "-m", "pixels-kmeans", "-d", "mine", *SMALL)
    assert code != 0
    assert "KeyError: 'nothing' (mine.py, line 6)" in said


def test_a_module_that_is_not_there_is_named_with_what_names_it(run: Call) -> None:
    code, said = run(OTHERS, "-m", "mine", *PHANTOM)
    assert code != 0
    assert "'not_there.at_all:Mine'" in said
    assert "no 'not_there'" in said
