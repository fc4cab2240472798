"""``import gcdbench`` is enough: the page's script, the functions' promises, and who may import what."""

from __future__ import annotations

import ast
import doctest
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gcdbench
from gcdbench.core.errors import ConfigError
from gcdbench.metrics.accuracy import accuracy
from gcdbench.reporting.frontdoor import scoring
from gcdbench.runs.index import load_runs

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "python.md"
STORE = ROOT / "benchmarks" / "medxplore" / "runs"
PUBLIC = ("gcdbench", "gcdbench.api", "gcdbench.plugins", "gcdbench.testing")
SMALL = {"preset": "smoke", "dataset_options": {"n_per_class": 6}, "image_size": 32}


def test_the_script_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    [script] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert len(script.strip().splitlines()) <= 14
    assert re.findall(r"^(?:import|from) (\S+)", script, re.M) == ["gcdbench"]
    monkeypatch.chdir(tmp_path)
    images = np.random.default_rng(0).integers(0, 256, (4, 40, 40, 3), dtype=np.uint8)
    exec(compile(script, str(PAGE), "exec"), {"my_images": images})
    assert "kmeans" in capsys.readouterr().out


def test_a_run_is_found_again_and_its_numbers_are_those_of_the_store(tmp_path: Path) -> None:
    first = gcdbench.run("ss-kmeans", "phantom", runs=tmp_path, **SMALL)
    again = gcdbench.run("ss-kmeans", "phantom", runs=tmp_path, **SMALL)
    assert (first.reused, again.reused) == (False, True)
    assert first.run_id == again.run_id
    stored = json.loads((first.path / "scores.json").read_text())["sets"]["transductive"]["scores"]
    assert first.scores == stored
    frame = gcdbench.results(tmp_path)
    assert frame["run_id"].tolist() == [first.run_id]
    assert frame["all"].iloc[0] == stored["all"]
    predictions = first.predictions()
    truth, cluster = pd.factorize(predictions["class"])[0], predictions["cluster"]
    assert accuracy(truth, cluster, np.ones(truth.max() + 1, dtype=bool))["all"] == pytest.approx(stored["all"])


def test_results_have_a_row_for_each_stored_run() -> None:
    frame = gcdbench.results(STORE)
    assert {"views", "protocol.split_seed", "training.epochs"} <= set(frame.columns)
    entries = {entry.run_id: entry for entry in load_runs(STORE)}
    assert set(frame["run_id"]) == set(entries)
    assert frame.set_index("run_id")["all"].to_dict() == {name: entry.scores["all"] for name, entry in entries.items()}


def test_an_empty_or_missing_store(tmp_path: Path) -> None:
    assert gcdbench.results(tmp_path).empty
    with pytest.raises(ConfigError, match="no store"):
        gcdbench.results(tmp_path / "nowhere")


def test_a_table_is_what_the_command_prints(cli) -> None:
    pytest.importorskip("gcdbench_medxplore")
    made = gcdbench.table("medxplore/errors", runs=STORE)
    assert (
        made.render("markdown") == cli("table", "medxplore/errors", "--runs", str(STORE), "--format", "markdown").stdout
    )
    assert set(made.entries["score"]) == set(made.content.scores)


def test_own_predictions_are_scored() -> None:
    rng = np.random.default_rng(0)
    y_true, cluster, is_old = rng.integers(0, 4, 60), rng.integers(0, 4, 60), [True, True, False, False]
    found = gcdbench.score(y_true, cluster, is_old)
    assert {key: found[key] for key in ("all", "old", "new")} == accuracy(y_true, cluster, is_old)
    with pytest.raises(ConfigError, match="one length"):
        gcdbench.score([0, 1], [0], [True])


def test_the_example_in_the_docstring() -> None:
    assert doctest.testmod(scoring).failed == 0


def test_names_complete_and_importing_costs_no_torch() -> None:
    assert set(dir(gcdbench)) == set(gcdbench.__all__)
    code = "import sys, gcdbench; gcdbench.table; gcdbench.runs if 0 else None; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_functions_do_not_hide_packages() -> None:
    """A function whose name is a package's would be replaced by it as soon as that package is imported."""
    packages = {path.name for path in (ROOT / "gcdbench").iterdir() if path.is_dir()}
    assert not packages & set(gcdbench.__all__)


def imported(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return {name for name in found if name == "gcdbench" or name.startswith("gcdbench.")}


@pytest.mark.parametrize(
    "file",
    sorted(
        [
            *(ROOT / "plugins").glob("*/gcdbench_*/**/*.py"),
            *(ROOT / "benchmarks" / "medxplore").glob("*.py"),
            *(ROOT / "tests" / "thirdparty").rglob("*.py"),
        ]
    ),
    ids=lambda file: file.relative_to(ROOT).as_posix(),
)
def test_plugins_and_studies_use_the_public_interface(file: Path) -> None:
    allowed = {name for name in imported(file) if name in PUBLIC or name.startswith("gcdbench.testing.")}
    assert imported(file) == allowed
