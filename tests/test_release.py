"""Version, date and licence are said in several places: they agree, and the installed wheels say the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import gcdbench

ROOT = Path(__file__).resolve().parents[1]
PLUGINS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_citation_agrees_with_the_package() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    core = project(ROOT)
    assert citation["version"] == gcdbench.__version__
    assert citation["license"] == core["license"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in core["authors"]]
    assert core["description"].lower() in citation["title"].lower()


def test_the_newest_release_of_the_changelog_is_this_version() -> None:
    released = re.findall(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert released[0] == (gcdbench.__version__, str(citation["date-released"]))


@pytest.mark.parametrize("folder", PLUGINS, ids=lambda folder: folder.name)
def test_packages_of_this_repository_are_released_together(folder: Path) -> None:
    plugin = project(folder)
    [package] = [path.parent for path in folder.glob("gcdbench_*/__init__.py")]
    assert plugin["version"] == gcdbench.__version__
    assert f'__version__ = "{gcdbench.__version__}"' in (package / "__init__.py").read_text(encoding="utf-8")
    assert plugin["license"] == project(ROOT)["license"]


@pytest.mark.parametrize("file", sorted([*ROOT.glob(".github/**/*.yml"), ROOT / ".pre-commit-config.yaml"]), ids=str)
def test_files_for_the_forge_can_be_read(file: Path) -> None:
    assert yaml.safe_load(file.read_text(encoding="utf-8"))
