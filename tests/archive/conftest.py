"""A store of made-up runs."""

from __future__ import annotations

import pytest

from gcdbench.plugins.manager import PluginManager
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
