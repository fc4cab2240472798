"""Two processes learn what one does: FAAC sits before the gathering of rows, patches and margins after it."""

from __future__ import annotations

import os
import runpy
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).with_name("medxplore_two_ranks.py")


@pytest.mark.slow
def test_the_weights_are_those_of_a_single_process(tmp_path):
    runpy.run_path(str(SCRIPT))["main"](tmp_path)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    ranks = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(tmp_path)],
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
    for feature in ("x_out", "both"):
        alone = dict(np.load(tmp_path / f"{feature}-0-of-1.npz"))
        pair, peer = (dict(np.load(tmp_path / f"{feature}-{rank}-of-2.npz")) for rank in range(2))
        assert any(name.startswith("faac.") for name in alone)
        assert any(name.startswith("acam.") for name in alone)
        assert (feature == "both") == any(name.startswith("tokens.") for name in alone)
        assert (feature == "both") == any(name.startswith("acam_head.") for name in alone)
        for name, value in alone.items():
            np.testing.assert_allclose(pair[name], value, rtol=2e-4, atol=2e-6, err_msg=name)
            assert np.array_equal(pair[name], peer[name]), name
