"""How long ``gcdbench status`` and ``gcdbench table`` take in a store of many runs.

    python -m benchmarks.speed.many_runs [--runs 100000]

Writes made-up runs (real layout, real scores, all five files that a list is made from) to a temporary folder and times
the commands in new processes: first without an index, then with it. Prints wall and CPU seconds; on a busy machine the
CPU seconds count.
"""

from __future__ import annotations

import argparse
import json
import os
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
from gcdbench.runs.reader import CONFIG, ENVIRONMENT, EVENTS, RECORD, SCORES
from gcdbench.runs.record import TRANSDUCTIVE
from gcdbench.runs.request import Request
from gcdbench.runs.strict_json import SEAL
from gcdbench.testing.stored import FakeRun, dump_sealed, write_fake_run

METHODS = ("rs-plus", "uno-plus", "orca", "gcd", "dccl", "cms", "simgcd", "legogcd", "nguf-approx", "kmeans")
DATASETS = ("kvasir", "organamnist", "organcmnist", "nct-crc-he-100k", "ham10000")
COMMANDS = (("status",), ("table",), ("table", "main"))


def write_store(runs: Path, count: int) -> None:
    """``count`` finished runs: one of each method and dataset in full, the other seeds as copies with other scores."""
    manager, rng = PluginManager(points=[]), np.random.default_rng(0)
    cells = [(method, dataset) for method in METHODS for dataset in DATASETS]
    for i, (method, dataset) in enumerate(cells):
        first = write_fake_run(runs, FakeRun(request=Request(method=method, dataset=dataset)), manager)
        record: dict[str, Any] = _table(first.record_path)
        scores: dict[str, Any] = _table(first.path / SCORES)
        found = scores["sets"][TRANSDUCTIVE]
        values = found["scores"]
        copied = {name: (first.path / name).read_bytes() for name in (CONFIG, ENVIRONMENT, EVENTS)}
        for seed in range(1, len(range(i, count, len(cells)))):
            record["seed"] = record["identity"]["seed"] = seed
            record["run_id"] = run_id(record["identity"])
            found["scores"] = {key: value + float(rng.normal()) for key, value in values.items()}
            folder = first.path.parent / record["run_id"]
            folder.mkdir()
            dump_sealed(folder / RECORD, record)
            dump_sealed(folder / SCORES, scores)
            for name, content in copied.items():
                (folder / name).write_bytes(content)


def _table(path: Path) -> dict[str, Any]:
    return {key: value for key, value in json.loads(path.read_text()).items() if key != SEAL}


def time_command(runs: Path, cache: Path, *arguments: str) -> dict[str, float]:
    """Wall and CPU seconds of one command in a new process."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "gcdbench.cli.main", *arguments, "--runs", str(runs)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "GCDBENCH_CACHE": str(cache)})
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"wall": wall, "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def main() -> None:
    """Write the store, time the commands, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs, cache = Path(folder) / "runs", Path(folder) / "cache"
        started = time.perf_counter()
        write_store(runs, options.runs)
        print(f"{options.runs} runs written in {time.perf_counter() - started:.0f} s")
        time.sleep(3)  # what was written a moment ago is not indexed
        _show(("status",), options.runs, "first, which makes the index", [time_command(runs, cache, "status")])
        for command in COMMANDS:
            repeated = [time_command(runs, cache, *command) for _ in range(options.repeats)]
            _show(command, options.runs, f"best of {options.repeats}", repeated)


def _show(command: tuple[str, ...], count: int, when: str, times: list[dict[str, float]]) -> None:
    best = {key: min(measured[key] for measured in times) for key in ("wall", "cpu")}
    print(f"gcdbench {' '.join(command)}, {count} runs, {when}: {best['wall']:.2f} s ({best['cpu']:.2f} s CPU)")


if __name__ == "__main__":
    main()
