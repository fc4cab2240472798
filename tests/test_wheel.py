"""What a user gets from the wheels: cards in gcdbench's, the study in MedXplore's, and nobody's runs."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = ROOT / "plugins" / "medxplore"

pytest.importorskip("hatchling")


def build(project: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def plugin_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(PLUGIN, tmp_path_factory.mktemp("plugin"))


def test_the_tool_carries_cards_and_no_study(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for card in ROOT.glob("datasets/*/card.toml"):
        assert f"gcdbench/_datasets/{card.parent.name}/card.toml" in names
    assert "gcdbench/_plugins/directory.toml" in names
    assert not [name for name in names if "benchmarks" in name or name.endswith((".csv", ".npz", ".safetensors"))]
    assert not [name for name in names if not name.startswith(("gcdbench/", "gcdbench-"))]
    assert wheel.stat().st_size < 2 * 2**20


def test_the_plugin_carries_its_study_and_no_results(plugin_wheel: Path) -> None:
    names = set(zipfile.ZipFile(plugin_wheel).namelist())
    study = PLUGIN / "gcdbench_medxplore" / "study"
    shipped = [*study.glob("*.toml"), *study.glob("reported/*.csv")]
    assert shipped
    for path in shipped:
        assert path.relative_to(PLUGIN).as_posix() in names
    assert not [name for name in names if name.endswith((".npz", ".safetensors", ".json"))]


def call(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``gcdbench`` of the unpacked wheels, and nothing of this checkout."""
    command = [sys.executable, "-m", "gcdbench.cli.main", *arguments]
    return subprocess.run(command, cwd=folder, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True)


def test_an_installed_tool_says_which_package_offers_a_suite(wheel: Path, tmp_path: Path) -> None:
    """The plugin that this environment has is hidden: only what was unpacked counts."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    hide = "import importlib.metadata as m\nm.entry_points = lambda **_: ()\n"
    script = (
        "from pathlib import Path\nimport gcdbench\n"
        "from gcdbench.core.errors import UnknownName\n"
        "from gcdbench.datasets.card import load_card\n"
        "from gcdbench.plugins.manager import PluginManager\n"
        "from gcdbench.reporting.suites.read import load_suite\n"
        "assert load_card('kvasir').protocols['paper-implied'].label_fraction == 0.2\n"
        "try:\n    load_suite('main', PluginManager(points=[]))\n"
        "except UnknownName as error:\n    print(gcdbench.__file__, error.hint)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", hide + script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path))
    assert "gcdbench-medxplore" in done.stdout


def test_both_wheels_together_list_the_suites_and_read_their_numbers(
    wheel: Path, plugin_wheel: Path, tmp_path: Path
) -> None:
    for file in (wheel, plugin_wheel):
        zipfile.ZipFile(file).extractall(tmp_path)
    listed = call(tmp_path, "list", "suites")
    assert "medxplore/main" in listed.stdout, listed.stderr
    shown = call(tmp_path, "table", "medxplore/main", "--preset", "laptop", "--runs", "none")
    assert shown.returncode == 0, shown.stderr
    assert "72.8" in shown.stdout  # reported, though nothing was run


def test_all_wheels_install_side_by_side_and_agree_about_the_version(
    wheel: Path, plugin_wheel: Path, tmp_path: Path
) -> None:
    """``pip install`` of the files themselves; what they depend on is here already."""
    natural = build(ROOT / "plugins" / "natural", tmp_path / "built")
    target = tmp_path / "installed"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", str(target)]
    done = subprocess.run([*command, *map(str, (wheel, plugin_wheel, natural))], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = {"gcdbench", "gcdbench_medxplore", "gcdbench_natural"}
    versions = {}
    for metadata in target.glob("gcdbench*.dist-info/METADATA"):
        headers = dict(re.findall(r"^(Name|Version|License-Expression): (.*)$", metadata.read_text(), re.MULTILINE))
        versions[headers["Name"].replace("-", "_")] = headers["Version"]
        assert headers["License-Expression"] == "Apache-2.0"
    assert set(versions) == names
    assert len(set(versions.values())) == 1
    assert call(target, "--version").stdout.split()[-1] == versions["gcdbench"]
    listed = call(target, "list", "suites").stdout
    assert "medxplore/main" in listed
    assert "natural/main" in listed
