"""From images to a report with 1,000, 10,000 and 100,000 images: time per stage, memory, disk, and how they grow.

    python -m benchmarks.speed.scale [--sizes 1000,10000,100000] [--budget 6GB] [--output FILE]

Phantom images, EfficientNet-Lite0 at 128 px, ``views = "auto"`` under a disk budget, two epochs of SimGCD, prediction,
scores and the HTML report, all from an empty cache. Needs an hour or two on two quiet cores with 100,000 images.
The figures are also printed as Markdown tables. The largest size needs about 15 GB of disk.

Wall-clock seconds are given with processor seconds, those of helping processes included: where other programs share
the machine, or stop this one, only the latter can be compared between sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks.speed.__main__ import describe_machine, is_same_machine
from benchmarks.speed.memory import anonymous_bytes, watch_family
from benchmarks.speed.report import table
from gcdbench.runs.events import EpochEnd, Event, Note, Progress, StepProgress

if TYPE_CHECKING:
    from gcdbench.images.image_set import ImageSet
    from gcdbench.training.method import Prediction
    from gcdbench.training.parametric import ParametricMethod

ROOT = Path(__file__).resolve().parents[2]
CLASSES = 8
EPOCHS = 2

DECODE, TEST_VIEWS, VIEWS = "decode and store them", "make the test views", "make the training views"
TRAIN, PREDICT = "train", "predict"

TASKS = {
    "reading files": "hash the images",
    "decoding images": DECODE,
    "test views": TEST_VIEWS,
    "view bank": VIEWS,
}
"""Tasks that a run tells of, and what they are called here."""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """Seconds by the clock, and processor seconds of this process and all below it."""

    wall: float
    cpu: float

    def since(self, before: Moment) -> Moment:
        """What passed between two moments."""
        return Moment(wall=self.wall - before.wall, cpu=self.cpu - before.cpu)


def now() -> Moment:
    """This moment."""
    spent = os.times()
    cpu = spent.user + spent.system + spent.children_user + spent.children_system
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            times = child.cpu_times()
            cpu += times.user + times.system
    return Moment(wall=time.perf_counter(), cpu=cpu)


class Stages:
    """When each stage of a run began and ended, told by its events."""

    def __init__(self) -> None:
        self.started = now()
        self.spans: dict[str, tuple[Moment, Moment]] = {}
        self.memory: dict[str, int] = {}
        self.notes: list[str] = []

    def __call__(self, event: Event) -> None:
        moment = now()
        if isinstance(event, Note):
            self.notes.append(event.message)
        name = TASKS.get(event.task) if isinstance(event, Progress) else None
        if isinstance(event, EpochEnd | StepProgress):
            name = TRAIN
        if name is not None:
            first = self.spans.get(name, (moment, moment))[0]
            self.spans[name] = (first, moment)
            self._look_at_memory(name)

    def _look_at_memory(self, stage: str) -> None:
        self.memory[stage] = max(self.memory.get(stage, 0), anonymous_bytes(os.getpid()))

    def take(self) -> dict[str, Moment]:
        """What each stage took; what lies between two of them belongs to neither and is called by what it is."""
        ended, spans = now(), dict(self.spans)
        made = [spans[name] for name in (TEST_VIEWS, VIEWS) if name in spans]
        begun, views = min((one[0] for one in made), key=wall), max((one[1] for one in made), key=wall)
        trained = spans[TRAIN][1]
        spans[TRAIN] = (views, trained)  # the first step has no event at its beginning
        found = {name: end.since(begin) for name, (begin, end) in spans.items()}
        found["split, checks, network"] = begun.since(spans[DECODE][1])
        predicted = spans[PREDICT][1]
        found["store predictions, score"] = ended.since(predicted)
        found["the run in all"] = ended.since(self.started)
        return found

    def watch(self, kind: type[ParametricMethod]) -> None:
        """Note when predictions begin and end; no event tells."""
        plain = kind.predict

        def predict(method: ParametricMethod, images: ImageSet) -> Prediction:
            begun = now()
            prediction = plain(method, images)
            self.spans[PREDICT] = (self.spans.get(PREDICT, (begun, begun))[0], now())
            self._look_at_memory(PREDICT)
            return prediction

        kind.predict = predict  # type: ignore[method-assign, assignment]


def wall(moment: Moment) -> float:
    """By the clock."""
    return moment.wall


def run_one(images: int, budget: str, folder: Path) -> None:
    """One run; prints its stages as JSON. Called in a process of its own, which is watched."""
    from gcdbench.plugins.manager import get_manager
    from gcdbench.runs.execution import Execution
    from gcdbench.runs.placement import Placement
    from gcdbench.runs.plan import make_plan
    from gcdbench.runs.request import Request
    from gcdbench.runs.runner import execute
    from gcdbench.training.parametric import ParametricMethod

    stages, manager = Stages(), get_manager()
    stages.watch(ParametricMethod)
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
    taken = stages.take()
    answer = {
        "seconds": {name: round(one.wall, 2) for name, one in taken.items()},
        "cpu_seconds": {name: round(one.cpu, 2) for name, one in taken.items()},
        "anonymous_bytes": stages.memory,
        "views": result.record.identity["views"],
        "counts": dict(result.record.split.counts),
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
        started = now()
        page = [sys.executable, "-m", "gcdbench", "report", "--runs", str(folder / "runs")]
        report = watch_family([*page, "--output", str(folder / "report.html")])
        if report.code:
            raise SystemExit(f"the report on {images} images ended with code {report.code}")
        spent = now().since(started)
        answer["seconds"]["report"], answer["cpu_seconds"]["report"] = round(spent.wall, 2), round(spent.cpu, 2)
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
    parts = []
    for title, key in (("seconds by the clock", "seconds"), ("processor seconds", "cpu_seconds")):
        names = list(dict.fromkeys(name for row in rows for name in row[key]))
        body = [
            [
                name,
                *(f"{row[key].get(name, 0):.1f}" for row in rows),
                *(f"{b[key].get(name, 0) / max(a[key].get(name, 0), 0.01):.1f}" for a, b in pairwise(rows)),
            ]
            for name in names
        ]
        parts.append(table([title, *sizes, *growth], body))
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
    about = {"machine": describe_machine(), "budget": options.budget, "epochs": EPOCHS}
    if problem := find_difference(options.output, about):
        parser.error(problem)
    for size in options.sizes.split(","):
        row = {**measure(int(size), options.budget), "date": time.strftime("%Y-%m-%d")}
        # After each size: the largest one takes long, and may fail.
        stored = json.loads(options.output.read_text(encoding="utf-8")) if options.output.exists() else {}
        results = {**stored, **about, "rows": join(row, stored)}
        options.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(describe(results["rows"]))


def find_difference(output: Path, about: dict[str, Any]) -> str:
    """Why figures made now cannot stand next to those of ``output``; "" where they can."""
    if not output.exists():
        return ""
    stored = json.loads(output.read_text(encoding="utf-8"))
    if not is_same_machine(stored["machine"], about["machine"]):
        return f"{output} was measured on another machine or set of versions: delete it, or --output"
    differs = [name for name in ("budget", "epochs") if stored[name] != about[name]]
    return f"{output} was measured with another {differs[0]}: delete it, or --output" if differs else ""


def join(row: dict[str, Any], stored: dict[str, Any]) -> list[dict[str, Any]]:
    """The new row, and what is stored of other sizes."""
    others = [other for other in stored.get("rows", []) if other["images"] != row["images"]]
    return sorted([*others, row], key=lambda one: int(one["images"]))


if __name__ == "__main__":
    main()
