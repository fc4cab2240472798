"""The plugin in this repository asks for what the core here is, and for nothing older."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

from gcdbench import __version__

ROOT = Path(__file__).resolve().parents[2]


def project(folder: str) -> dict[str, Any]:
    with (ROOT / folder / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)["project"]


def bounds(folder: str) -> dict[str, Any]:
    requirements = map(Requirement, project(folder)["dependencies"])
    return {requirement.name: requirement.specifier for requirement in requirements}


def test_medxplore_and_core_agree_about_what_both_need() -> None:
    core, plugin = bounds("."), bounds("plugins/medxplore")
    shared = core.keys() & plugin.keys()
    assert "torch" in shared
    assert {name: plugin[name] for name in shared} == {name: core[name] for name in shared}
    assert project("plugins/medxplore")["requires-python"] == project(".")["requires-python"]


def test_medxplore_asks_for_this_gcdbench() -> None:
    """The versions it was tested with: not an older one without its interface, nor one that may have another."""
    wanted, here = bounds("plugins/medxplore")["gcdbench"], Version(__version__)
    assert here in wanted
    assert Version(f"{here.major}.{here.minor + 1}") not in wanted
    assert here.minor == 0 or Version(f"{here.major}.{here.minor - 1}.99") not in wanted
