"""A store of made-up runs."""

from __future__ import annotations

import zipfile

import pytest

from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.archive.layout import MANIFEST
from gcdbench.runs.archive.pack import pack_runs
from gcdbench.runs.request import Request
from gcdbench.testing.stored import FakeRun, write_fake_run


@pytest.fixture(scope="session")
def manager():
    return PluginManager(points=[])


@pytest.fixture
def add_run(manager):
    def add(runs, seed=0, **more):
        request = Request(method="simgcd", dataset="phantom", preset="smoke", seed=seed)
        return write_fake_run(runs, FakeRun(request=request, **more), manager)

    return add


@pytest.fixture
def packed(tmp_path, add_run):
    """Members of a good archive with one run, as bytes by name (without the manifest)."""
    runs = tmp_path / "there"
    directory = add_run(runs)
    pack_runs(runs, [directory.path], tmp_path / "good.zip")
    with zipfile.ZipFile(tmp_path / "good.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != MANIFEST}
