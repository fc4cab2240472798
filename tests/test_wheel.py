"""What a user gets from the wheel: cards, suites and published numbers, and none of the repository's runs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

pytest.importorskip("hatchling")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    return path


def test_it_carries_what_the_commands_read_and_no_results(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for suite in ROOT.glob("benchmarks/*.toml"):
        assert f"gcdbench/_benchmarks/{suite.name}" in names
    for numbers in ROOT.glob("benchmarks/reported/*.csv"):
        assert f"gcdbench/_benchmarks/reported/{numbers.name}" in names
    for card in ROOT.glob("datasets/*/card.toml"):
        assert f"gcdbench/_datasets/{card.parent.name}/card.toml" in names
    assert not [name for name in names if "results" in name or name.endswith((".npz", ".safetensors"))]
    assert wheel.stat().st_size < 2 * 2**20


def test_suites_and_published_numbers_load_from_an_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    script = (
        "from gcdbench.datasets.card import load_card\n"
        "from gcdbench.reporting.published.reported import read_reported\n"
        "from gcdbench.reporting.suites.read import benchmarks_folder, load_suite, suite_names\n"
        "assert load_card('kvasir').counts\n"
        "for name in suite_names():\n"
        "    for file in load_suite(name).reported:\n"
        "        assert read_reported(benchmarks_folder() / 'reported' / file)\n"
        "print(benchmarks_folder(), *suite_names())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    folder, *suites = done.stdout.split()
    assert Path(folder).is_relative_to(tmp_path)
    assert {"main", "errors"} <= set(suites)
