"""What finished runs cost at test time: measured once, kept in the run as ``cost.json``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gcdbench.core.errors import StoreError
from gcdbench.reporting.records import CellRecord
from gcdbench.runs.reader import COST, read_cost
from gcdbench.runs.strict_json import write_sealed


def measure_runs(paths: Sequence[Path], *, device: str, threads: int) -> dict[str, str]:
    """Measure runs that were not measured yet, one after another (side by side they would slow each other down).

    Returns the errors by run id; each measurement has a process of its own, so that none inherits memory.
    """
    errors: dict[str, str] = {}
    for path in paths:
        if (path / COST).is_file():
            continue
        command = [sys.executable, "-m", "gcdbench.cli.main", "cost", str(path), "--json"]
        command += ["--device", device, "--threads", str(threads)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        try:
            if result.returncode:
                raise ValueError(result.stderr.strip().splitlines()[0] if result.stderr.strip() else "no message")
            (measured,) = json.loads(result.stdout)
        except ValueError as error:
            errors[path.name] = str(error)
            continue
        write_sealed(path / COST, measured)
    return errors


def with_cost(record: CellRecord) -> CellRecord:
    """The record with its measured cost among its scores, where there is one."""
    try:
        measured = read_cost(record.path)
    except StoreError:  # damaged: it is measured again
        return record
    return replace(record, measured=_scores(measured)) if measured else record


def _scores(measured: Mapping[str, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, key, scale in (
        ("parameters_m", "parameters", 1e-6),
        ("gflops", "flops", 1e-9),
        ("latency_ms", "latency_ms", 1.0),
        ("images_per_s", "images_per_s", 1.0),
        ("weights_mb", "weights_mb", 1.0),
        ("activations_mb", "activations_mb", 1.0),
    ):
        if key in measured:
            found[name] = scale * measured[key]
    return found
