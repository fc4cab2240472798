"""A package written by ``gcdbench new`` installs and passes its own tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gcdbench.core.errors import ConfigError
from gcdbench.testing.scaffold import KINDS, make_package


@pytest.mark.parametrize("name", ["My-Method", "1st", "a b", "../up", "a_b", "-a", ""])
def test_names_that_cannot_be_packages_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be the name"):
        make_package("method", name, tmp_path / "new")
    assert not list(tmp_path.iterdir())


def test_what_exists_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(ConfigError, match="exists already"):
        make_package("metric", "mine", tmp_path / "mine")
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no scaffold"):
        make_package("optimiser", "mine", tmp_path / "mine")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_new_package_installs_and_passes_its_tests(kind: str, tmp_path: Path) -> None:
    """Installed into a folder of its own, found by its entry point, tested by its own tests."""
    name = f"my-own-{kind}"
    made, site = tmp_path / name, tmp_path / "site"
    make_package(kind, name, made)
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target"]
    subprocess.run([*install, str(site), str(made)], check=True, capture_output=True, text=True)
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    listed = subprocess.run(
        [sys.executable, "-m", "gcdbench", "list", f"{kind}s"], env=environment, capture_output=True, text=True
    )
    assert name in listed.stdout, listed.stderr
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(made / "tests")]
    ran = subprocess.run(tests, cwd=made, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
