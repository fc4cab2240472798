"""How long ``gcdbench status`` and ``gcdbench table`` take in a store of many runs.

    python -m benchmarks.speed.many_runs --folder many [--runs 100000]

Writes made-up runs (real layout, real scores, all five files that a list is made from) to ``--folder``, unless they are
there already, and times the commands in new processes: first without an index, then with it. Wall and CPU seconds go
to ``many_runs.json`` next to this file, with the machine they were measured on, and into docs/speed.md; with
``--output`` to that file only.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.report import put_between_marks, table
from gcdbench.core.identity import run_id
from gcdbench.core.machine import cpu_model
from gcdbench.core.work import available_cores
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.reader import CONFIG, ENVIRONMENT, EVENTS, RECORD, SCORES
from gcdbench.runs.record import TRANSDUCTIVE
from gcdbench.runs.request import Request
from gcdbench.runs.strict_json import SEAL
from gcdbench.testing.stored import FakeRun, dump_sealed, write_fake_run

METHODS = ("rs-plus", "uno-plus", "orca", "gcd", "dccl", "cms", "simgcd", "legogcd", "nguf-approx", "kmeans")
DATASETS = ("kvasir", "organamnist", "organcmnist", "nct-crc-he-100k", "ham10000")
COMMANDS = (("status",), ("table",), ("table", "medxplore/main"))
OUTPUT = Path(__file__).with_name("many_runs.json")
PAGE = Path(__file__).parents[2] / "docs" / "speed.md"


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


def describe(measured: dict[str, Any]) -> str:
    """Seconds of each command as a table."""
    machine, seconds = measured["machine"], measured["seconds"]
    body = [[f"`{name}`" if name != "indexing" else name, one["wall"], one["cpu"]] for name, one in seconds.items()]
    title = (
        f"A store of {measured['runs']:,} runs, median of {measured['repeats']} calls (indexing: once), measured"
        f" {measured['date']} on {machine['cores']} cores ({machine['processor']}):"
    )
    return f"{title}\n\n" + table(["command", "seconds", "processor seconds"], body)


def main() -> None:
    """Write the store where it is missing, time the commands, store the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--only-write", action="store_true", help="Write the runs and time nothing.")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    runs = options.folder / "runs"
    if not runs.is_dir():
        write_store(runs, options.runs)
        time.sleep(3)  # what was written a moment ago is not indexed
    if options.only_write:
        return
    with tempfile.TemporaryDirectory() as cache:
        timed = {"indexing": time_command(runs, Path(cache), "status")}
        for command in COMMANDS:
            repeated = [time_command(runs, Path(cache), *command) for _ in range(options.repeats)]
            timed[" ".join(command)] = {key: statistics.median(one[key] for one in repeated) for key in ("wall", "cpu")}
    measured = {
        "runs": options.runs,
        "repeats": options.repeats,
        "date": time.strftime("%Y-%m-%d"),
        "machine": {"processor": cpu_model(), "cores": available_cores()},
        "seconds": {name: {key: round(value, 2) for key, value in one.items()} for name, one in timed.items()},
    }
    options.output.write_text(json.dumps(measured, indent=1) + "\n")
    print(describe(measured))
    if options.output == OUTPUT:
        put_between_marks(describe(measured), PAGE, "many runs")


if __name__ == "__main__":
    main()
