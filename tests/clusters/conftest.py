"""Tests with real engines: ``python -m pytest -m cluster tests/clusters``."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clusters.namespaces import nothing_listens_outside
from tests.clusters.sweeps import finished, gcdbench, write_suite

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _this_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find this checkout, whatever directory they start in; checkpoints are frequent, so that runs resume."""
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *filter(None, known)]))
    monkeypatch.setenv("GCDBENCH_CHECKPOINT_SECONDS", "0.5")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True, scope="session")
def _marked() -> Iterator[str]:
    """Every process that a test starts has this in its environment, daemons included."""
    name, value = "CLUSTER_TESTS", f"of-{os.getpid()}"
    os.environ[name] = value
    yield f"{name}={value}"
    del os.environ[name]


@pytest.fixture(autouse=True)
def _unreachable(_marked: str) -> Iterator[None]:
    """Nothing that a test starts can be reached from outside."""
    if shutil.which("ss") is None:
        yield
        return
    with nothing_listens_outside(_marked):
        yield


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> dict[int, dict[str, str]]:
    """The hashes of the six runs, each done in one piece on this machine."""
    folder = tmp_path_factory.mktemp("undisturbed")
    suite = write_suite(folder)
    command = gcdbench("sweep", suite, "--preset", "smoke", "-j", 2, "--threads", 1, "--runs", folder / "runs")
    environment = {**os.environ, "GCDBENCH_CACHE": str(shared_cache), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = finished(folder / "runs")
    assert sorted(found) == [0, 1, 2, 3, 4, 5]
    return found
