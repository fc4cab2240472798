"""A plugin file as a user writes it: everything in one place, nothing installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SOURCE = """
import numpy as np

from gcdbench.api import DatasetCard, DatasetSource, Prediction
from gcdbench.plugins import DatasetSpec, MethodSpec, hookimpl

N = 130  # enough for worker processes to be used


def raw(index):
    return np.random.default_rng(index).bytes(8 * 8 * 3)


def decode(data):
    return np.frombuffer(data, dtype=np.uint8).reshape(8, 8, 3)


def noise(request):
    card = DatasetCard(name="noise", title="t", modality="m", classes=("a", "b"), licence="l", citation="c",
                       source="s", layout="x")
    keys = tuple(map(str, range(N)))
    return DatasetSource(card=card, keys=keys, labels=np.arange(N) % 2, raw=raw, decode=decode)


class Parity:
    def __init__(self, config, task, ctx):
        pass

    def fit(self, data):
        pass

    def predict(self, images):
        return Prediction(ids=images.ids, cluster=images.ids % 2, k_hat=2, anchored=False)


@hookimpl
def gcdbench_datasets():
    return [DatasetSpec(name="noise", factory=__name__ + ":noise")]


@hookimpl
def gcdbench_methods():
    return [MethodSpec(name="parität", factory=__name__ + ":Parity", needs_backbone=False)]


@hookimpl
def gcdbench_run_finished(run):
    raise KeyError("an observer that fails at the end")
"""


def test_dataset_method_and_observer_in_one_file_named_by_a_relative_path(tmp_path: Path) -> None:
    """Its dataset is read by worker processes, which have to know the file as well."""
    (tmp_path / "my-plugin.py").write_text(SOURCE, encoding="utf-8")
    options = ["--method", "parität", "--dataset", "noise", "--set", "image_size=16", "--workers", "2", "--quiet"]
    command = [sys.executable, "-m", "gcdbench.cli.main", "--plugin-file", "my-plugin.py", "run", *options]
    environment = {**os.environ, "GCDBENCH_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "All" in done.stdout
    [events] = (tmp_path / "runs").glob("noise/parität/*/events.jsonl")
    assert "an observer that fails at the end" in events.read_text(encoding="utf-8")
