"""How long ``gcdbench table`` takes in a store of many runs.

    python -m benchmarks.speed.many_runs [--runs 10000]

Writes made-up runs (real layout, real scores) to a temporary folder and times the command in new processes: first
without the store's index, then with it. Prints wall and CPU seconds; on a busy machine the CPU seconds count.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from gcdbench.core.identity import run_id
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.request import Request
from gcdbench.testing.stored import FakeRun, write_fake_run

METHODS = ("rs-plus", "uno-plus", "orca", "gcd", "dccl", "cms", "simgcd", "legogcd", "nguf-approx", "kmeans")
DATASETS = ("kvasir", "organamnist", "organcmnist", "nct-crc-he-100k", "ham10000")


def write_store(runs: Path, count: int) -> None:
    """``count`` finished runs: one of each method and dataset in full, the other seeds as copies with other scores."""
    manager, rng = PluginManager(points=[]), np.random.default_rng(0)
    cells = [(method, dataset) for method in METHODS for dataset in DATASETS]
    for i, (method, dataset) in enumerate(cells):
        first = write_fake_run(runs, FakeRun(request=Request(method=method, dataset=dataset)), manager)
        record: dict[str, Any] = json.loads(first.record_path.read_text())
        scores: dict[str, Any] = json.loads(first.scores_path.read_text())
        values = scores["sets"]["transductive"]["scores"]
        for seed in range(1, len(range(i, count, len(cells)))):
            record["seed"] = record["identity"]["seed"] = seed
            record["run_id"] = run_id(record["identity"])
            changed = {key: value + float(rng.normal()) for key, value in values.items()}
            scores["sets"]["transductive"]["scores"] = changed
            folder = first.path.parent / record["run_id"]
            folder.mkdir()
            (folder / "run.json").write_text(json.dumps(record))
            (folder / "scores.json").write_text(json.dumps(scores))


def time_table(runs: Path, *arguments: str) -> dict[str, float]:
    """Wall and CPU seconds of one ``gcdbench table`` in a new process."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "gcdbench.cli.main", "table", *arguments, "--runs", str(runs)]
    subprocess.run(command, check=True, capture_output=True)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"wall": wall, "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def main() -> None:
    """Write the store, time the command, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        write_store(runs, options.runs)
        for suite in ((), ("main",)):
            (runs / ".index.json").unlink(missing_ok=True)
            name = " ".join(["gcdbench table", *suite])
            times = [("no index yet", time_table(runs, *suite))]
            repeated = [time_table(runs, *suite) for _ in range(options.repeats)]
            times.append((f"best of {options.repeats}", {k: min(t[k] for t in repeated) for k in ("wall", "cpu")}))
            for when, measured in times:
                print(f"{name}, {options.runs} runs, {when}: {measured['wall']:.2f} s ({measured['cpu']:.2f} s CPU)")


if __name__ == "__main__":
    main()
