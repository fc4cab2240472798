"""Two processes train the same model as one, where BatchNorm does not come between them."""

from __future__ import annotations

import os
import runpy
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).with_name("two_ranks.py")


def launch_two(out: Path) -> None:
    """What torchrun does, without its own start-up time."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    ranks = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(out)],
            env={**os.environ, **shared, **paths, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
        )
        for rank in range(2)
    ]
    for process in ranks:
        try:
            _, said = process.communicate(timeout=180)
        finally:
            process.kill()
        assert process.returncode == 0, said.decode()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, np.ndarray]]:
    out = tmp_path_factory.mktemp("ranks")
    runpy.run_path(str(SCRIPT))["main"](out)
    launch_two(out)
    return {path.stem: dict(np.load(path)) for path in sorted(out.glob("*.npz"))}


def test_the_weights_are_those_of_a_single_process(results: dict[str, dict[str, np.ndarray]]) -> None:
    alone, pair = results["0-of-1"], results["0-of-2"]
    names = [name for name in alone if name.startswith("weight/")]
    assert any("before" in name for name in names)
    assert any("after" in name for name in names)
    assert any("second-batch" in name for name in names)
    for name in names:
        np.testing.assert_allclose(pair[name], alone[name], rtol=2e-4, atol=2e-6, err_msg=name)


def test_both_ranks_hold_the_same_model_and_all_predictions(results: dict[str, dict[str, np.ndarray]]) -> None:
    first, second = results["0-of-2"], results["1-of-2"]
    for name in first:
        if name != "events":
            assert np.array_equal(first[name], second[name]), name
    assert first["ids"].tolist() == results["0-of-1"]["ids"].tolist()
    np.testing.assert_allclose(first["embedding"], results["0-of-1"]["embedding"], rtol=1e-3, atol=1e-5)


def test_only_the_first_rank_speaks(results: dict[str, dict[str, np.ndarray]]) -> None:
    assert results["0-of-2"]["events"] >= 3
    assert results["1-of-2"]["events"] == 0
