"""Every method of the toolkit and of MedXplore goes from two folders to the table and the page."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from gcdbench.plugins.manager import get_manager
from tests.runs.own_images import draw_classes

SMALL = ("--preset", "smoke", "--set", "image_size=96", "--set", "epochs=1", "--workers", "1", "-q")
"""As elsewhere, but large enough for the patches that MedXplore compares."""
OURS = ("gcdbench", "gcdbench-medxplore")
METHODS = sorted(name for name in get_manager().names("methods") if get_manager().provider("methods", name)[0] in OURS)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("method", METHODS)
def test_up_to_the_table_the_page_and_new_images(cli: Callable[..., Result], tmp_path: Path, method: str) -> None:
    labelled = draw_classes(tmp_path / "known", ("a", "b"), 8)
    pile = draw_classes(tmp_path / "pile", ("x", "y"), 8)
    sides = ("--labelled", labelled, "--unlabelled", pile, "-o", tmp_path / "out")
    result = cli("discover", *sides, "--k", 4, "-m", method, *SMALL, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    with (tmp_path / "out" / "predictions.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 16
    assert (tmp_path / "out" / "gallery.html").stat().st_size > 10_000
    answer = cli("predict", told["run"], pile, "-o", tmp_path / "new.csv", "-q")
    if answer.exit_code:  # a method without a model says so
        assert told["model"] is None
        assert "Error: " in answer.stderr
        return
    with (tmp_path / "new.csv").open(encoding="utf-8", newline="") as file:
        again = {row["path"]: row for row in csv.DictReader(file)}
    same = [again[row["path"]]["cluster"] == row["cluster"] for row in rows]
    assert sum(same) >= (len(same) - 3 if method == "cms" else len(same))
