"""What it costs to verify a sealed file: processor and clock seconds per GB, the file in the page cache or not.

    python -m benchmarks.speed.seals [--gigabytes 4] [--output FILE]

The figures go to seals.json next to this file and into docs/reliability.md; with ``--output`` to that file only.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.__main__ import describe_machine
from benchmarks.speed.report import put_between_marks, table
from gcdbench.core.sealed import seal, seal_size, verify

OUTPUT = Path(__file__).with_name("seals.json")
PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
GB = 10**9


def write_sealed(path: Path, gigabytes: int) -> None:
    """A file of random bytes with its seal, on the disk."""
    block = np.random.default_rng(0).integers(0, 256, GB // 10, dtype=np.uint8).tobytes()
    with path.open("wb") as file:
        for _ in range(10 * gigabytes):
            file.write(block)
    seal(path)
    with path.open("rb") as file:
        os.fsync(file.fileno())


def time_verification(path: Path, *, cold: bool) -> tuple[float, float]:
    """Clock and processor seconds of one verification."""
    with path.open("rb") as file:
        if cold:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    spent, started = time.process_time(), time.perf_counter()
    verify(path)
    return time.perf_counter() - started, time.process_time() - spent


def measure(gigabytes: int, repeats: int, folder: Path) -> dict[str, Any]:
    """Medians, per GB."""
    path = folder / "sealed"
    write_sealed(path, gigabytes)
    found: dict[str, Any] = {"gigabytes": gigabytes, "repeats": repeats, "seal_bytes_per_gb": seal_size(GB)}
    for name, cold in (("cached", False), ("not_cached", True)):
        each = [time_verification(path, cold=cold) for _ in range(repeats)]
        wall, cpu = (statistics.median(column) / gigabytes for column in zip(*each, strict=True))
        found[name] = {"wall": wall, "cpu": cpu}
    return found


def describe(results: dict[str, Any]) -> str:
    """The figures as a table."""
    machine = results["machine"]
    rows = [
        [title, f"{results[key]['wall']:.2f} s", f"{results[key]['cpu']:.2f} s"]
        for key, title in (("cached", "in the page cache"), ("not_cached", "only on the disk"))
    ]
    title = (
        f"Verifying a file, per GB; median of {results['repeats']} times {results['gigabytes']} GB, measured"
        f" {results['date']} on {machine['cores']} cores ({machine['cpu']}). The seal takes"
        f" {results['seal_bytes_per_gb'] / 1e3:.0f} kB per GB."
    )
    return f"{title}\n\n" + table(["the file is", "by the clock", "processor time"], rows)


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.seals", description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(options.gigabytes, options.repeats, Path(folder))
    results = {"machine": describe_machine(), "date": time.strftime("%Y-%m-%d"), **figures}
    options.output.write_text(json.dumps(results, indent=1) + "\n")
    print(describe(results))
    if options.output == OUTPUT:
        put_between_marks(describe(results), PAGE, "seals")


if __name__ == "__main__":
    main()
