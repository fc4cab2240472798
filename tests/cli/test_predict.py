"""``gcdbench predict`` and ``gcdbench export-model`` on a small run of EfficientNet-Lite0."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from PIL import Image

SMALL = ("--dataset", "phantom", "--preset", "smoke", "--dataset-set", "n_per_class=8", "--set", "image_size=64")
RUN = ("run", "-m", "simgcd", *SMALL, "--set", "epochs=1", "--workers", "1", "-q")


@pytest.fixture
def run(cli: Callable[..., Result], tmp_path: Path) -> tuple[str, Path]:
    """Id of a run and the directory of runs."""
    runs = tmp_path / "runs"
    result = cli(*RUN, "--runs", runs)
    assert result.exit_code == 0, result.output
    [directory] = (runs / "phantom" / "simgcd").iterdir()
    return directory.name, runs


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    root = tmp_path / "new images"
    rng = np.random.default_rng(3)
    for number in range(11):
        folder = root / f"patient {number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(rng.integers(0, 256, (5, 5, 3), dtype=np.uint8))
        coarse.resize((90, 70)).save(folder / f"{number}.png")
    return root


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_folder_becomes_a_table(
    cli: Callable[..., Result], run: tuple[str, Path], pictures: Path, tmp_path: Path
) -> None:
    name, runs = run
    out = tmp_path / "out.csv"
    result = cli("predict", name[:8], pictures, "-o", out, "--runs", runs, "--json", "-q")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    rows = read(out)
    assert told["images"] == len(rows) == 11
    assert sorted(row["path"] for row in rows) == sorted(map(str, pictures.rglob("*.png")))
    classes = json.loads(next(runs.glob("*/*/*/run.json")).read_text())["split"]["old_classes"]
    for row in rows:
        cluster = int(row["cluster"])
        assert row["name"] == (classes[cluster] if cluster < len(classes) else f"cluster {cluster}")
        assert row["kind"] == ("known" if cluster < len(classes) else "new")
        assert 0 < float(row["confidence"]) <= 1
        assert row["nearest_known_class"] in classes
        assert -1 <= float(row["likeness"]) <= 1
        assert (row["unlike"] == "yes") == (float(row["unlike_score"]) > 1)
    assert sum(row["unlike"] == "yes" for row in rows) == told["unlike"]
    printed = cli("predict", name, pictures / "patient 1", "--runs", runs, "-q")
    assert printed.stdout.splitlines()[0].startswith("path,cluster,name,kind,confidence")
    assert len(printed.stdout.splitlines()) == 6


def test_names_that_were_given_are_printed(
    cli: Callable[..., Result], run: tuple[str, Path], pictures: Path, tmp_path: Path
) -> None:
    from gcdbench.models.card_file import change_names
    from gcdbench.runs.saved_models import model_directory

    name, runs = run
    change_names(model_directory(name, runs), clusters={number: f"finding {number % 2}" for number in range(8)})
    out = tmp_path / "out.csv"
    assert cli("predict", name, pictures, "-o", out, "--runs", runs, "-q").exit_code == 0
    for row in read(out):
        assert row["name"] == f"finding {int(row['cluster']) % 2}"
        assert row["kind"] == "new"


def test_an_image_that_cannot_be_read_is_named(
    cli: Callable[..., Result], run: tuple[str, Path], pictures: Path, tmp_path: Path
) -> None:
    name, runs = run
    (pictures / "broken.png").write_bytes(b"\x89PNG rubbish")
    out = tmp_path / "out.csv"
    refused = cli("predict", name, pictures, "-o", out, "--runs", runs, "-q")
    assert refused.exit_code == 2
    assert "broken.png' cannot be read" in refused.stderr
    assert not out.exists()
    skipped = cli("predict", name, pictures, "-o", out, "--runs", runs, "--skip-unreadable", "-q")
    assert skipped.exit_code == 0
    assert "left out" in skipped.stderr
    assert len(read(out)) == 11


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nonsense", "."), "There is no run 'nonsense'"),
        (("RUN", "no/such/folder"), "There is no 'no/such/folder'"),
        (("RUN", ".", "--json"), "Give a file with --out"),
        (("RUN", ".", "--device", "cuda:99"), "no device 'cuda:99'"),
    ],
)
def test_refusals(cli: Callable[..., Result], run: tuple[str, Path], arguments: tuple[str, ...], said: str) -> None:
    name, runs = run
    result = cli("predict", *(name if part == "RUN" else part for part in arguments), "--runs", runs)
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.slow
def test_the_exported_lite0_agrees_on_the_images_of_its_run(
    cli: Callable[..., Result], run: tuple[str, Path], pictures: Path, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    name, runs = run
    target = tmp_path / "model.onnx"
    options = ("--check", pictures, "--check-images", "7", "--runs", runs, "--json")
    result = cli("export-model", name, "-o", target, *options)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["images"] == 7
    assert told["other_clusters"] == 0
    assert told["largest_difference"] < 1e-4
    assert target.stat().st_size == told["bytes"]
