"""A third party's package, installed by pip, found by its entry point, used through the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gcdbench.testing import conformance

EXAMPLE = Path(__file__).parents[1] / "thirdparty" / "example"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the example was pip-installed; the environment itself stays as it is."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target"]
    subprocess.run([*command, str(target), str(EXAMPLE)], check=True, capture_output=True)
    return target


def call(site: Path | None, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(site) if site else ""}
    command = [sys.executable, "-m", "gcdbench.cli.main", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_method_dataset_and_metric_of_a_third_party(site: Path, tmp_path: Path) -> None:
    methods = {row["name"]: row for row in json.loads(call(site, "list", "methods", "--json"))}
    assert methods["nearest-mean"]["distribution"] == "gcdbench-example"
    runs = ("--runs", str(tmp_path / "runs"))
    common = ("--set", "image_size=32", "--workers", "1", "--json", *runs)
    scores = json.loads(call(site, "run", "--method", "nearest-mean", "--dataset", "stripes", *common))
    assert scores["metrics"]["purity"] == "gcdbench-example/1"

    call(None, "rescore", *runs)  # without the package its metric is gone from the scores, and nothing else changes
    path = Path(scores["path"], "scores.json")
    assert "purity" not in json.loads(path.read_text())["sets"]["transductive"]["scores"]
    assert "new transductive.fragments, transductive.purity" in call(site, "rescore", *runs)
    after = json.loads(path.read_text())["sets"]["transductive"]["scores"]
    assert after == scores["sets"]["transductive"]["scores"]


def test_the_method_is_at_most_forty_lines() -> None:
    source = (EXAMPLE / "gcdbench_example" / "method.py").read_text().splitlines()
    code = [line for line in source if line.strip() and not line.strip().startswith(('"""', "#"))]
    assert len(code) <= 40


@pytest.mark.usefixtures("example_plugin")
@pytest.mark.parametrize("check", conformance.CHECKS)
def test_the_example_that_others_copy_conforms(check: str, tmp_path: Path) -> None:
    from gcdbench_example.method import NearestMean, NearestMeanConfig

    conformance.run_check(check, NearestMean, NearestMeanConfig(), folder=tmp_path)
