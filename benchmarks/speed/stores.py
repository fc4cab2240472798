"""How exporting, importing and rescoring grow with the number of runs.

    python -m benchmarks.speed.stores [--sizes 100,1000,10000] [--imports 10,100,1000] [--output FILE]

Made-up runs with 3,000 predictions each, as many as Kvasir has unlabelled images, in a real layout with real scores.
Every command has a process of its own; on a busy machine its processor seconds count, not those of the clock. The
figures of the usual sizes go to stores.json next to this file and into docs/speed.md. Those of other sizes are printed,
and ``--output`` keeps figures in another file.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.speed.__main__ import describe_machine
from benchmarks.speed.many_runs import time_command
from benchmarks.speed.report import put_between_marks, table
from gcdbench.core.identity import run_id
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.reader import RECORD
from gcdbench.runs.request import Request
from gcdbench.runs.strict_json import SEAL
from gcdbench.testing.stored import FakeRun, dump_sealed, write_fake_run

OUTPUT = Path(__file__).with_name("stores.json")
PAGE = Path(__file__).parents[2] / "docs" / "speed.md"
SAMPLES = 3000
SIZES, IMPORTS = "100,1000,10000", "10,100,1000"


def write_seeds(runs: Path, count: int) -> None:
    """``count`` seeds of one method on one dataset, each with predictions of its own file."""
    request = Request(method="simgcd", dataset="kvasir")
    first = write_fake_run(runs, FakeRun(request=request, samples=SAMPLES), PluginManager(points=[]))
    stored: dict[str, Any] = json.loads(first.record_path.read_text())
    record = {key: value for key, value in stored.items() if key != SEAL}
    for seed in range(1, count):
        record["seed"] = record["identity"]["seed"] = seed
        record["run_id"] = run_id(record["identity"])
        folder = first.path.parent / record["run_id"]
        shutil.copytree(first.path, folder)
        dump_sealed(folder / RECORD, record)


def measure(rescores: list[int], imports: list[int]) -> list[dict[str, Any]]:
    """One row for each command and size."""
    rows = []
    for count in sorted({*rescores, *imports}):
        with tempfile.TemporaryDirectory() as scratch:
            runs, cache, archive = Path(scratch, "runs"), Path(scratch, "cache"), Path(scratch, "archive.zip")
            write_seeds(runs, count)
            commands: list[tuple[str, ...]] = [("rescore",)] if count in rescores else []
            if count in imports:
                commands += [("export", str(archive)), ("import", str(archive))]
            for command in commands:
                target = Path(scratch, "elsewhere") if command[0] == "import" else runs
                spent = time_command(target, cache, *command)
                size = {"archive_bytes": archive.stat().st_size} if archive.exists() else {}
                rows.append({"command": command[0], "runs": count, **spent, **size})
    return rows


def describe(results: dict[str, Any]) -> str:
    """Seconds of each command by the number of runs, and how they grow."""
    rows, machine = results["rows"], results["machine"]
    body = []
    for command in dict.fromkeys(row["command"] for row in rows):
        before: dict[str, Any] | None = None
        for row in (row for row in rows if row["command"] == command):
            grown = "" if before is None else f"{row['cpu'] / before['cpu']:.1f} for {row['runs'] / before['runs']:.0f}"
            each = f"{1e3 * row['cpu'] / row['runs']:.1f}"
            body.append([command, f"{row['runs']:,}", f"{row['wall']:.1f}", f"{row['cpu']:.1f}", each, grown])
            before = row
    title = (
        f"Runs with {results['samples']:,} predictions, measured {results['date']} on {machine['cores']} cores"
        f" ({machine['cpu']}):"
    )
    header = ["command", "runs", "seconds", "processor seconds", "ms per run", "times as long, for × runs"]
    return f"{title}\n\n{table(header, body)}"


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, store where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.stores", description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default=SIZES, help="numbers of runs that are scored again")
    parser.add_argument("--imports", default=IMPORTS, help="numbers of runs that are exported and imported")
    parser.add_argument("--output", type=Path, help="a file for the figures; the published ones stay")
    options = parser.parse_args(arguments)
    sizes, imports = ([int(text) for text in part.split(",") if text] for part in (options.sizes, options.imports))
    load = os.getloadavg()
    rows = measure(sizes, imports)
    about = {"machine": describe_machine(), "date": time.strftime("%Y-%m-%d"), "load_before": load, "samples": SAMPLES}
    results = {**about, "rows": rows}
    print(describe(results))
    publish = options.output is None and (options.sizes, options.imports) == (SIZES, IMPORTS)
    if (file := OUTPUT if publish else options.output) is not None:
        file.write_text(json.dumps(results, indent=1) + "\n")
    if publish:
        put_between_marks(describe(results), PAGE, "stores")


if __name__ == "__main__":
    main()
