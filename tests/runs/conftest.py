"""Stores of made-up runs with real scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.executors.arrival import AUTO
from gcdbench.runs.executors.base import Job
from gcdbench.runs.placement import Placement
from gcdbench.runs.request import Request
from gcdbench.testing.stored import FakeRun, write_fake_run


@pytest.fixture(scope="session")
def manager() -> PluginManager:
    return PluginManager(points=[])


@pytest.fixture
def add_run(manager: PluginManager) -> Callable[..., RunDirectory]:
    """Write one run below a folder; ``seed`` and whatever a :class:`FakeRun` has may be given."""

    def add(runs: Path, seed: int = 0, method: str = "pixels-kmeans", **more: object) -> RunDirectory:
        request = Request(method=method, dataset="phantom", preset="smoke", seed=seed)
        return write_fake_run(runs, FakeRun(request=request, samples=48, **more), manager)  # type: ignore[arg-type]

    return add


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(
        request=Request(method="kmeans", dataset="phantom", preset="smoke"),
        placement=Placement(runs=tmp_path / "runs", device=AUTO),
    )
