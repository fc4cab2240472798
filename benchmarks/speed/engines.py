"""What an engine costs: many tiny runs through each executor, compared with the local one.

    python -m benchmarks.speed.engines [--runs 200] [--at-once 2] [--only process,dask,slurm] [--own-slurm] [--dry]

Each executor does the same runs (k-means on the pixels of a small phantom), as many at a time, in a store of its own,
through ``gcdbench sweep`` in a new process. The time of a run is wall time times runs at a time, divided by runs; an
engine's overhead is that time minus the local executor's. ``slurm`` is measured where sbatch works, or, with
``--own-slurm`` and as root, on a SLURM of two nodes that is started for it (see tests/clusters); Dask is a cluster of
this machine. On a busy machine only the differences that are large mean anything. Results go to
benchmarks/speed/engines.json and into docs/executors.md, unless ``--dry``; ``--only`` keeps what was measured of the
others on the same day.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.speed.__main__ import describe_machine
from benchmarks.speed.report import put_between_marks, table

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "benchmarks" / "speed" / "engines.json"
PAGE = ROOT / "docs" / "executors.md"
EXECUTORS = ("process", "dask", "slurm")
SUITE = """
title = "Tiny"
[presets.smoke]
seeds = [0]
[presets.smoke.set]
image_size = 32
[[columns]]
dataset = "phantom"
protocol = "half"
[[rows]]
method = "pixels-kmeans"
"""
Start = Callable[[list[str]], list[str]]
"""Makes a command one that runs where the engine can be reached."""


def measure(executor: str, folder: Path, options: argparse.Namespace, start: Start, environment: dict[str, str]) -> Any:
    """One executor: all runs in a new store, after one that fills the cache."""
    (folder / "tiny.toml").write_text(SUITE)
    engine = {"slurm": ["--executor-set", "poll=1", "--executor-set", "time=10"]}.get(executor, [])

    def sweep(runs: str, seeds: str) -> float:
        words = [sys.executable, "-m", "gcdbench.cli.main", "sweep", str(folder / "tiny.toml"), "--preset", "smoke"]
        words += ["--executor", executor, *engine, "-j", str(options.at_once), "--threads", "1"]
        words += ["--seeds", seeds, "--runs", str(folder / f"{executor}-{runs}"), "--json"]
        began = time.perf_counter()
        done = subprocess.run(start(words), env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{executor}: {done.stderr.strip() or done.stdout.strip()}")
        return time.perf_counter() - began

    sweep("first", "0")
    seconds = sweep("all", f"0-{options.runs - 1}")
    return {
        "executor": executor,
        "runs": options.runs,
        "at_once": options.at_once,
        "seconds": round(seconds, 1),
        "seconds_per_run": round(seconds * options.at_once / options.runs, 3),
    }


def measure_slurm(folder: Path, options: argparse.Namespace, environment: dict[str, str]) -> Any:
    """On the SLURM of this machine, or on one that is started for it."""
    if not options.own_slurm:
        return measure("slurm", folder, options, list, environment)
    from tests.clusters.slurm_cluster import slurm_cluster

    with slurm_cluster(folder / "slurm", cpus=max(1, options.at_once // 2)) as cluster:
        own = {**environment, "SLURM_CONF": cluster.environment["SLURM_CONF"]}
        return measure("slurm", folder, options, lambda words: cluster.space.command(*words), own)


def keep_others(
    rows: list[dict[str, Any]], stored: dict[str, Any], *, machine: dict[str, Any], date: str
) -> list[dict[str, Any]]:
    """``rows``, and what was stored of other executors on the same day and machine with as many runs."""
    measured = {row["executor"] for row in rows}
    alike = stored["date"] == date and stored["machine"] == machine
    sizes = {(row["runs"], row["at_once"]) for row in rows}
    others = [
        row
        for row in stored["rows"]
        if alike and row["executor"] not in measured and {(row["runs"], row["at_once"])} == sizes
    ]
    return sorted([*rows, *others], key=lambda row: EXECUTORS.index(row["executor"]))


def describe_engines(results: dict[str, Any]) -> str:
    """The figures as text, each engine compared with the local executor."""
    machine, rows = results["machine"], results["rows"]
    local = next((row["seconds_per_run"] for row in rows if row["executor"] == "process"), None)
    body = [
        [
            f"`{row['executor']}`",
            f"{row['seconds']:.0f}",
            f"{row['seconds_per_run']:.2f}",
            "" if local is None else f"{row['seconds_per_run'] - local:+.2f}",
        ]
        for row in rows
    ]
    title = (
        f"{rows[0]['runs']} tiny runs (k-means on pixels, one process each), {rows[0]['at_once']} at a time, measured "
        f"{results['date']} on {machine['cores']} cores ({machine['cpu']}):"
    )
    return f"{title}\n\n" + table(["executor", "whole sweep, s", "a run, s", "more than the local executor, s"], body)


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--only", default=",".join(EXECUTORS))
    parser.add_argument("--own-slurm", action="store_true")
    parser.add_argument("--dry", action="store_true", help="print only")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "GCDBENCH_CACHE": str(folder / "cache"), "PYTHONPATH": paths}
        for executor in options.only.split(","):
            if executor == "slurm":
                rows.append(measure_slurm(folder, options, environment))
            else:
                rows.append(measure(executor, folder, options, list, environment))
    machine, date = describe_machine(), time.strftime("%Y-%m-%d")
    if not options.dry and OUT.is_file():
        rows = keep_others(rows, json.loads(OUT.read_text()), machine=machine, date=date)
    results = {"machine": machine, "date": date, "rows": rows}
    print(describe_engines(results))
    if not options.dry:
        OUT.write_text(json.dumps(results, indent=1) + "\n")
        put_between_marks(describe_engines(results), PAGE)


if __name__ == "__main__":
    main()
