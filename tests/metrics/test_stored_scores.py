"""Metrics that were added later: stored scores stay as they are, and ``rescore`` adds the new ones."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from gcdbench.metrics import ties
from gcdbench.metrics.error_terms import HEAD_TERMS

STORES = sorted((Path(__file__).resolve().parents[2] / "benchmarks").glob("*/runs/kvasir"))
ANCHORED = {"kmeans": False, "gcd": True, "simgcd": True}
LATER = {*HEAD_TERMS, *(score.key for score in ties.SCORES)}


@pytest.mark.skipif(not STORES, reason="needs the stored runs of the repository")
def test_rescoring_stored_runs_changes_no_score_and_adds_those_of_later_metrics(
    cli: Callable[..., Result], tmp_path: Path
) -> None:
    copies, before = [], []
    for method in ANCHORED:
        chosen = sorted((STORES[0] / method).iterdir())[0]
        copies.append(tmp_path / "runs" / "kvasir" / method / chosen.name)
        shutil.copytree(chosen, copies[-1])
        before.append(forget_later_scores(copies[-1] / "scores.json"))
    done = cli("rescore", "--runs", tmp_path / "runs")
    assert done.exit_code == 0, done.output
    assert re.search(r"3 run\(s\): 0 score\(s\) changed, [1-9]", done.output)
    for anchored, old, copy in zip(ANCHORED.values(), before, copies, strict=True):
        new = json.loads((copy / "scores.json").read_text())["sets"]["transductive"]["scores"]
        assert {key: new[key] for key in old} == old
        assert new["old_low"] <= new["old"] <= new["old_high"]
        assert ("head_false_old" in new) == anchored


def forget_later_scores(path: Path) -> dict[str, float]:
    """Leave a run with the scores that it had before these metrics were written, and return those."""
    content = json.loads(path.read_text())
    for entry in content["sets"].values():
        entry["scores"] = {key: value for key, value in entry["scores"].items() if key not in LATER}
    path.write_text(json.dumps(content))
    kept: dict[str, float] = content["sets"]["transductive"]["scores"]
    return kept
