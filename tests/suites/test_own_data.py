"""A suite on a folder of one's own images: its runs are found again, as those of a registered dataset are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

SUITE = """
title = "Mine"
[presets.smoke]
seeds = [0, 1]
[[columns]]
dataset = "{dataset}"
title = "Mine"
protocol = "half"
[[rows]]
method = "pixels-kmeans"
"""


@pytest.fixture
def images(tmp_path: Path) -> Path:
    root = tmp_path / "mine"
    rng = np.random.default_rng(0)
    for number, name in enumerate(("bricks", "dots", "rings", "waves")):
        (root / name).mkdir(parents=True)
        for i in range(6):
            pixels = np.clip(rng.normal(60 * number, 9, (24, 24, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(root / name / f"{i}.png")
    (tmp_path / "list.csv").write_text(
        "path,label\n" + "".join(f"{p.relative_to(tmp_path)},{p.parent.name}\n" for p in sorted(root.rglob("*.png")))
    )
    return tmp_path


@pytest.mark.parametrize("dataset", ["folder:mine", "csv:list.csv"])
def test_runs_on_own_images_are_found_by_their_suite(cli, images: Path, monkeypatch, dataset: str) -> None:
    monkeypatch.chdir(images)
    Path("mine.toml").write_text(SUITE.format(dataset=dataset))
    arguments = ("mine.toml", "--preset", "smoke", "--executor", "inline")
    swept = cli("sweep", *arguments)
    assert swept.exit_code == 0, swept.output
    assert "2 of 2 runs are done" in swept.output
    assert "2 done, 0 missing" in cli("sweep", *arguments, "--dry-run").output
    more = cli("sweep", *arguments, "--seeds", "0-2", "--dry-run").output
    assert "1 missing" in more
    assert "unknown length" not in more  # the finished ones tell how long it will take
    table = cli("table", "mine.toml", "--json")
    assert '"n": 2' in table.stdout, table.output


def test_two_datasets_that_differ_in_nothing_else_are_kept_apart(cli, images: Path, monkeypatch) -> None:
    monkeypatch.chdir(images)
    shutil.copytree("mine", "yours")
    columns = SUITE.format(dataset="folder:mine").replace(
        "[[rows]]", '[[columns]]\ndataset = "folder:yours"\ntitle = "Yours"\nprotocol = "half"\n[[rows]]'
    )
    Path("both.toml").write_text(columns)
    arguments = ("both.toml", "--preset", "smoke", "--seeds", "0", "--executor", "inline")
    assert "0 done, 2 missing" in cli("sweep", *arguments, "--dry-run").output
    assert cli("sweep", *arguments, "--dataset", "folder:yours").exit_code == 0
    entries = json.loads(cli("table", "both.toml", "--seeds", "0", "--json").stdout)["entries"]
    assert {entry["column"]: entry["n"] for entry in entries} == {"folder:mine": 0, "folder:yours": 1}
