"""A store of made-up runs with real scores."""

from __future__ import annotations

import pytest

from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.suites.read import load_suite
from gcdbench.reporting.records import cell_records
from gcdbench.runs.index import load_runs
from gcdbench.runs.plan import RunRequest
from gcdbench.testing.stored import FakeRun, write_fake_run

SUITE = """
title = "Two methods on two datasets"
reported = "medxplore.csv"
reported_table = "main"
protocol = "paper-stated"

[presets.paper]
seeds = [0, 1, 2, 3, 4, 5, 6]

[presets.laptop]
seeds = [0, 1, 2, 3, 4, 5, 6]

[presets.smoke]
seeds = [0]
stand_in = "missing"

[[columns]]
dataset = "kvasir"
title = "Kvasir"

[[columns]]
dataset = "organamnist"
title = "OrganAMNIST"

[[rows]]
method = "simgcd"
title = "SimGCD"
reported = "simgcd"

[[rows]]
method = "legogcd"
title = "LegoGCD"
reported = "legogcd"

[[rows]]
key = "low"
title = "SimGCD, small steps"
method = "simgcd"
set = { lr = 0.01 }
"""


@pytest.fixture(scope="session")
def manager():
    return PluginManager(points=[])


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "two.toml"
    path.write_text(SUITE)
    return load_suite(path)


@pytest.fixture
def store(tmp_path, manager):
    """Writes runs; ``store.records()`` reads them back."""

    class Store:
        path = tmp_path / "runs"

        def add(self, method="simgcd", seeds=(0,), dataset="kvasir", preset="laptop", overrides=None, **more):
            for seed in seeds:
                request = RunRequest(
                    method=method, dataset=dataset, preset=preset, seed=seed, overrides=dict(overrides or {})
                )
                directory = write_fake_run(self.path, FakeRun(request=request, **more), manager)
            return directory

        def records(self):
            return cell_records(load_runs(self.path))

    return Store()
