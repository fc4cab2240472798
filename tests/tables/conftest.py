"""A store of made-up runs with real scores."""

from __future__ import annotations

import pytest

from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.records import cell_records
from gcdbench.reporting.suites.read import load_suite
from gcdbench.runs.index import load_runs
from gcdbench.runs.request import Request
from gcdbench.testing.stored import FakeRun, write_fake_run

SUITE = """
title = "Two methods on two datasets"
reported = "printed.csv"
reported_table = "main"
reported_preset = "paper"
protocol = "paper-stated"
replicate = "seed"

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

PRINTED = """
table,method,dataset,all,old,new
main,simgcd,kvasir,72.8,60.2,82.9
main,legogcd,kvasir,75.4,70.2,79.6
main,simgcd,organamnist,63.5,66.0,63.2
main,legogcd,organamnist,60.0,70.0,57.9
other,simgcd,kvasir,1.0,1.0,1.0
"""

THEIR_PRESET = """
from gcdbench.plugins import PresetSpec, hookimpl


@hookimpl
def gcdbench_presets():
    return [PresetSpec(name="paper", api=2, settings={"backbone": "resnet18", "image_size": 224, "views": "online"})]
"""


@pytest.fixture(scope="session")
def manager(tmp_path_factory):
    """gcdbench itself, and a study's preset."""
    file = tmp_path_factory.mktemp("study") / "their_preset.py"
    file.write_text(THEIR_PRESET)
    return PluginManager(points=[], files=[file])


@pytest.fixture
def suite(tmp_path, manager):
    (tmp_path / "printed.csv").write_text(PRINTED.strip())
    path = tmp_path / "two.toml"
    path.write_text(SUITE)
    return load_suite(path, manager)


@pytest.fixture
def store(tmp_path, manager):
    """Writes runs; ``store.records()`` reads them back."""

    class Store:
        path = tmp_path / "runs"

        def add(self, method="simgcd", seeds=(0,), dataset="kvasir", preset="laptop", overrides=None, **more):
            for seed in seeds:
                request = Request(
                    method=method, dataset=dataset, preset=preset, seed=seed, overrides=dict(overrides or {})
                )
                directory = write_fake_run(self.path, FakeRun(request=request, **more), manager)
            return directory

        def records(self):
            return cell_records(load_runs(self.path))

    return Store()
