"""From images to a report with 1,000, 10,000 and 100,000 images: time per stage, memory, disk, and how they grow.

    python -m benchmarks.speed.scale [--sizes 1000,10000,100000] [--budget 6GB] [--output FILE]

Phantom images, EfficientNet-Lite0 at 128 px, ``views = "auto"`` under a disk budget, two epochs of SimGCD, prediction,
scores and the HTML report, all from an empty cache. Needs an hour or two on two quiet cores with 100,000 images.
The figures are also printed as Markdown tables. The largest size needs about 15 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.speed.__main__ import describe_machine
from benchmarks.speed.memory import watch_family
from benchmarks.speed.report import table
from gcdbench.runs.events import EpochEnd, Event, Note, Progress, StepProgress

ROOT = Path(__file__).resolve().parents[2]
CLASSES = 8
EPOCHS = 2

TASKS = {
    "reading files": "hash the images",
    "decoding images": "decode and store them",
    "test views": "make the test views",
    "view bank": "make the training views",
}
"""Tasks that a run tells of, and what they are called here."""


class Stages:
    """When each stage of a run began and ended, told by its events."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.spans: dict[str, tuple[float, float]] = {}
        self.notes: list[str] = []

    def __call__(self, event: Event) -> None:
        now = time.perf_counter()
        if isinstance(event, Note):
            self.notes.append(event.message)
        name = TASKS.get(event.task) if isinstance(event, Progress) else None
        if isinstance(event, EpochEnd | StepProgress):
            name = "train"
        if name is not None:
            first = self.spans.get(name, (now, now))[0]
            self.spans[name] = (first, now)

    def seconds(self, predict: float) -> dict[str, float]:
        """Seconds of each stage; what lies between two of them belongs to neither and is called by what it is."""
        spans = dict(self.spans)
        views = max(spans[name][1] for name in ("make the test views", "make the training views") if name in spans)
        spans["train"] = (views, spans["train"][1])  # the first step has no event at its beginning
        found = {name: end - begin for name, (begin, end) in spans.items()}
        stored = spans["decode and store them"][1]
        begun = min(spans[name][0] for name in ("make the test views", "make the training views") if name in spans)
        found["split, checks, network"] = begun - stored
        found["predict"] = predict
        found["store predictions, score"] = time.perf_counter() - spans["train"][1] - predict
        found["the run in all"] = time.perf_counter() - self.started
        return {name: round(seconds, 2) for name, seconds in found.items()}


def run_one(images: int, budget: str, folder: Path) -> None:
    """One run; prints its stages as JSON. Called in a process of its own, which is watched."""
    from gcdbench.plugins.manager import get_manager
    from gcdbench.runs.execution import Execution
    from gcdbench.runs.placement import Placement
    from gcdbench.runs.plan import make_plan
    from gcdbench.runs.request import Request
    from gcdbench.runs.runner import execute

    stages, manager = Stages(), get_manager()
    request = Request(
        method="simgcd",
        dataset="phantom",
        preset="laptop",
        overrides={"views": "auto", "epochs": EPOCHS},
        dataset_options={"n_per_class": str(images // CLASSES)},
    )
    placement = Placement(runs=folder / "runs", cache=folder / "cache", disk_budget=budget)
    plan = make_plan(request, manager)
    result = execute(Execution(plan=plan, placement=placement, manager=manager, listener=stages))
    answer = {
        "seconds": stages.seconds(result.record.seconds["predict"]),
        "views": result.record.identity["views"],
        "notes": stages.notes,
        "all": result.scores.sets["transductive"].scores["all"],
    }
    print(json.dumps(answer))


def measure(images: int, budget: str) -> dict[str, Any]:
    """One size: a run, then the report, each in a process of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        command = [sys.executable, "-m", "benchmarks.speed.scale", "--one", str(images)]
        command += ["--budget", budget, "--folder", scratch]
        load = os.getloadavg()
        run = watch_family(command)
        if run.code:
            raise SystemExit(f"the run with {images} images ended with code {run.code}")
        answer: dict[str, Any] = json.loads(run.output.splitlines()[-1])
        started = time.perf_counter()
        page = [sys.executable, "-m", "gcdbench", "report", "--runs", str(folder / "runs")]
        report = watch_family([*page, "--output", str(folder / "report.html")])
        if report.code:
            raise SystemExit(f"the report on {images} images ended with code {report.code}")
        answer["seconds"]["report"] = round(time.perf_counter() - started, 2)
        return {
            "images": images,
            **answer,
            "load_before": load,
            "peak_anonymous_bytes": {"run": run.largest, "run, all processes": run.together, "report": report.largest},
            "disk_bytes": {
                kind.name: size_of(kind) for kind in sorted((folder / "cache").iterdir()) if size_of(kind) > 10**4
            }
            | {"the run's directory": size_of(folder / "runs"), "report": size_of(folder / "report.html")},
        }


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    return path.stat().st_size if path.is_file() else sum(f.stat().st_size for f in path.rglob("*") if f.is_file())


def describe(rows: list[dict[str, Any]]) -> str:
    """Tables for the docs: seconds per stage with their growth, memory and disk."""
    sizes = [f"{row['images']:,}" for row in rows]
    growth = [f"× {b['images'] / a['images']:.0f} images" for a, b in pairwise(rows)]
    names = list(dict.fromkeys(name for row in rows for name in row["seconds"]))
    body = [
        [
            name,
            *(f"{row['seconds'].get(name, 0):.1f}" for row in rows),
            *(f"{b['seconds'].get(name, 0) / max(a['seconds'].get(name, 0), 0.01):.1f}" for a, b in pairwise(rows)),
        ]
        for name in names
    ]
    parts = [table(["seconds", *sizes, *growth], body)]
    for title, key, unit in (
        ("anonymous memory, GiB", "peak_anonymous_bytes", 2**30),
        ("disk, GB", "disk_bytes", 10**9),
    ):
        kinds = list(dict.fromkeys(kind for row in rows for kind in row[key]))
        cells = [[kind, *(f"{row[key].get(kind, 0) / unit:.2f}" for row in rows)] for kind in kinds]
        parts.append(table([title, *sizes], cells))
    parts.append(table(["", *sizes], [["views = auto means", *(row["views"] for row in rows)]]))
    return "\n\n".join(parts)


def main() -> None:
    """Measure all sizes, print tables, store the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.scale", description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1000,10000,100000", help="numbers of images")
    parser.add_argument("--budget", default="6GB", help="room for stored views")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "speed" / "scale.json")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        run_one(options.one, options.budget, options.folder)
        return
    rows: list[dict[str, Any]] = []
    for size in options.sizes.split(","):
        rows.append(measure(int(size), options.budget))
        results = {"machine": describe_machine(), "date": time.strftime("%Y-%m-%d"), "budget": options.budget}
        # After each size: the largest one takes long, and may fail.
        options.output.write_text(json.dumps({**results, "epochs": EPOCHS, "rows": rows}, indent=1) + "\n")
    print(describe(rows))


if __name__ == "__main__":
    main()
