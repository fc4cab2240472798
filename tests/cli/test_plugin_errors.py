"""An error in somebody's method as the command line says it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gcdbench.cli.main import main
from gcdbench.plugins.manager import get_manager

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


def test_an_error_in_a_method_names_its_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(SOURCE)
    options = ["--preset", "smoke", "--set", "image_size=32", "--dataset-set", "n_per_class=6", "--workers", "0"]
    arguments = ["--plugin-file", str(tmp_path / "mine.py"), "run", "-m", "mine", "-d", "phantom", *options, "--quiet"]
    monkeypatch.setattr(sys, "argv", ["gcdbench", *arguments])
    monkeypatch.setenv("GCDBENCH_PLUGINS", "")  # the option changes it
    get_manager.cache_clear()
    with pytest.raises(SystemExit) as stopped:
        main()
    get_manager.cache_clear()
    assert stopped.value.code == 1
    said = capsys.readouterr().err
    assert "ValueError: invalid literal for int() with base 10: 'no number' (mine.py, line 10)" in said
