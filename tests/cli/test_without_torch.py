"""Help, lists, states, tables and plans do without torch: it takes seconds to import."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.request import Request
from gcdbench.testing.stored import FakeRun, write_fake_run

SUITE = """
title = "Every method"
presets = { laptop = { seeds = [0, 1] } }
columns = [{ dataset = "phantom" }]
"""
PROGRAM = """
import sys
sys.modules["torch"] = None  # whoever imports it has an ImportError
from gcdbench.cli.main import command
command(sys.argv[1:], standalone_mode=False)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("without")
    manager = PluginManager(points=[])
    for method in ("simgcd", "kmeans"):
        request = Request(method=method, dataset="phantom", preset="laptop")
        write_fake_run(made / "runs", FakeRun(request=request), manager)
    rows = "".join(f'[[rows]]\nmethod = "{name}"\n' for name in manager.names("methods"))
    (made / "one.toml").write_text(SUITE + rows)
    return made


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("list", "methods"),
        ("list", "backbones"),
        ("status",),
        ("table",),
        ("table", "one.toml"),
        ("table", "one.toml", "--against", "simgcd"),
        ("rescore",),
        ("verify",),
        ("export", "a.zip"),
        ("sweep", "one.toml", "--dry-run", "--preset", "laptop"),
        ("data", "list"),
    ],
    ids=" ".join,
)
def test_torch_is_not_imported(folder: Path, shared_cache: Path, arguments: tuple[str, ...]) -> None:
    environment = {**os.environ, "GCDBENCH_RUNS": str(folder / "runs"), "GCDBENCH_CACHE": str(shared_cache)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_run_that_is_done_is_found_without_torch(
    tmp_path: Path, shared_cache: Path, cli: Callable[..., object]
) -> None:
    options = ["run", "--method", "pixels-kmeans", "--dataset", "phantom", "--preset", "smoke", "--runs", str(tmp_path)]
    cli(*options)
    environment = {**os.environ, "GCDBENCH_CACHE": str(shared_cache)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *options], env=environment, capture_output=True, text=True, check=False
    )
    assert "Reused the finished run" in done.stdout, done.stderr[-2000:]
