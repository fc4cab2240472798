"""Discovery on real images: it is the run it would be with truth, and its model knows what it has never seen."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from gcdbench.splits.manifest import ROLES
from gcdbench.splits.split_file import read_split
from tests.runs.own_images import divide

Cli = Callable[..., Result]

OLD = ("dyed-lifted-polyps", "esophagitis", "normal-pylorus", "polyps")
"""Neither the first classes nor consecutive ones."""
TRAINING, HELD_OUT, CELLS = 60, 25, 120
PRESET = ("--preset", "smoke", "-q")

pytestmark = pytest.mark.slow


def real(place: str) -> Path:
    for root in filter(None, os.environ.get("GCDBENCH_DATA", "").split(os.pathsep)):
        if (Path(root) / place).exists():
            return Path(root) / place
    pytest.skip(f"{place} is not in GCDBENCH_DATA")


def flagged(cli: Cli, run: str, folder: Path, out: Path) -> float:
    result = cli("predict", run, folder, "-o", out, "--json", "-q")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    return float(told["unlike"] / told["images"])


def test_the_run_with_truth_and_blood_cells(cli: Cli, tmp_path: Path) -> None:
    whole, unseen = tmp_path / "whole", tmp_path / "unseen"
    for folder in sorted(real("kvasir/kvasir-dataset").iterdir()):
        distinct = {hashlib.sha256(file.read_bytes()).digest(): file for file in sorted(folder.glob("*.jpg"))}
        for number, file in enumerate(list(distinct.values())[: TRAINING + HELD_OUT]):
            target = (whole if number < TRAINING else unseen) / folder.name / f"{file.stem}.jpg"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    chosen = ("--old", ",".join(OLD))
    exported = cli("data", "split", "export", f"folder:{whole}", "-o", tmp_path / "split.tsv", *chosen)
    assert exported.exit_code == 0, exported.output
    split = read_split(tmp_path / "split.tsv")
    own = divide(whole, dict(zip(split.sha256, (ROLES[role] for role in split.roles), strict=True)), tmp_path / "own")

    sides = ("--labelled", own.labelled, "--unlabelled", own.unlabelled, "--k", 8, "-o", tmp_path / "out")
    blind = json.loads(cli("discover", *sides, *PRESET, "--json").stdout)
    assert blind["sets"] == {}
    scored = json.loads(cli("discover", *sides, *PRESET, "--json", "--truth", own.truth).stdout)
    run = json.loads(cli("run", "-d", f"folder:{whole}", "-m", "simgcd", *chosen, *PRESET, "--json").stdout)
    assert scored["run"] == blind["run"]
    assert scored["reused"]
    assert scored["sets"] == run["sets"]
    assert {"all", "old", "new"} <= set(scored["sets"]["transductive"]["scores"])

    cells = tmp_path / "cells"
    cells.mkdir()
    for file in sorted(real("pbc-mini").rglob("*.jpg"))[:: 2400 // CELLS][:CELLS]:
        shutil.copyfile(file, cells / f"{file.parent.name} {file.name}")
    assert flagged(cli, blind["run"], cells, tmp_path / "cells.csv") > 0.9
    assert flagged(cli, blind["run"], unseen, tmp_path / "unseen.csv") < 0.15
