"""Measure everything that is said about speed, on this machine, and write it down.

    python -m benchmarks.speed [--data-root DIR] [--only loops,step,...] [--quick]

Needs about half an hour on two quiet cores; ``--quick`` takes two minutes and shows only that everything works.
A full measurement goes to benchmarks/speed/speed.json and, as tables, into docs/speed.md. One of some sections, or one
with ``--output``, changes neither: it prints its tables, and ``--publish`` puts its sections next to those published.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.speed import first_run, kernels, loops, scoring, startup
from benchmarks.speed.claims import write_claim
from benchmarks.speed.images import find_folder, make_images
from benchmarks.speed.report import write_tables
from benchmarks.speed.settings import Settings, measure

ROOT = Path(__file__).resolve().parents[2]
FIGURES, PAGE = Path("benchmarks", "speed", "speed.json"), Path("docs", "speed.md")
README = Path("README.md")
SECTIONS = ("first_run", "kernels", "loops", "prefix", "step", "scaling", "rounding", "scoring", "startup")
BACKBONES = ("efficientnet-lite0", "resnet18")


def describe_machine() -> dict[str, Any]:
    """What the figures were measured on."""
    from gcdbench.core.machine import cpu_model
    from gcdbench.core.work import available_cores
    from gcdbench.models.kernels import describe_kernels
    from gcdbench.runs.environment import package_versions

    return {
        "cpu": cpu_model(),
        "cores": available_cores(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "packages": package_versions(),
        "kernels": describe_kernels(),
    }


def is_same_machine(published: dict[str, Any], now: dict[str, Any]) -> bool:
    """The same processor, packages and kernels; a build number of the operating system makes no other machine."""
    return {**published, "platform": ""} == {**now, "platform": ""}


def run_section(name: str, base: Settings, options: argparse.Namespace) -> Any:
    """One section's figures."""
    quick = options.quick
    if name == "first_run":
        with tempfile.TemporaryDirectory() as scratch:
            return first_run.measure(make_images(Path(scratch), 64 if quick else 800), quick=quick)
    if name == "kernels":
        repeats, images = (1, 16) if quick else (3, 256)
        return [
            row
            for backbone in BACKBONES
            for row in kernels.compare(
                Settings(**{**vars(base), "backbone": backbone, "views": "bank:2", "images": images}), repeats=repeats
            )
            if row["what"] != "views" or backbone == BACKBONES[0]  # views do not depend on the network
        ]
    if name == "loops":
        total, epochs = (64, 2) if quick else (4000, 20)
        rows = []
        for backbone in BACKBONES:
            settings = Settings(**{**vars(base), "backbone": backbone})
            rounds = [loops.measure_round(settings, ours_first=turn % 2 == 0) for turn in range(options.rounds)]
            rows.append(loops.summarise(settings, rounds, total=total, epochs=epochs, runs=10))
        return rows
    if name == "prefix":
        return [
            {"backbone": backbone, **measure("prefix", Settings(**{**vars(base), "backbone": backbone}))}
            for backbone in BACKBONES
        ]
    if name == "rounding":
        return measure("rounding", Settings(**{**vars(base), "images": 16 if quick else 384}))
    if name == "scoring":
        return scoring.measure([10**3] if quick else [10**4, 10**5, 10**6, 10**7])
    if name == "startup":
        return startup.measure()
    with tempfile.TemporaryDirectory() as cache:
        images = 32 if quick else 256
        if name == "step":
            changes = {"cache": cache, "threads": 1, "views": "bank:2", "images": images}
            return [
                {"backbone": backbone, **measure("step", Settings(**{**vars(base), **changes, "backbone": backbone}))}
                for backbone in BACKBONES
            ]
        return measure("scaling", Settings(**{**vars(base), "cache": cache, "images": 8 if quick else 250}))["rows"]


def main(arguments: list[str] | None = None, root: Path = ROOT) -> None:
    """Measure, print, store; ``root``: where the published figures and their page are."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__.splitlines()[0])
    parser.add_argument("--data-root", type=Path, help="holds kvasir/; default: GCDBENCH_DATA, else made images")
    parser.add_argument("--only", help=f"sections, separated by commas: {SECTIONS}")
    parser.add_argument("--rounds", type=int, default=2, help="how often each loop is measured")
    parser.add_argument("--steps", type=int, default=10, help="timed steps of each loop and round")
    parser.add_argument("--images", type=int, default=1000, help="images the loops are measured on")
    parser.add_argument("--quick", action="store_true", help="tiny sizes; nothing is published")
    parser.add_argument("--output", type=Path, help="a file for the figures; what it holds of other sections stays")
    parser.add_argument("--publish", action="store_true", help="replace these sections of the published figures")
    options = parser.parse_args(arguments)
    sections = (options.only or ",".join(SECTIONS)).split(",")
    if unknown := set(sections) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    if options.publish and (options.quick or options.output):
        parser.error("--publish goes with neither --quick nor --output")
    publish = options.publish or not (options.only or options.output or options.quick)
    output = root / FIGURES if publish else options.output

    results = json.loads(output.read_text()) if output is not None and output.is_file() else {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = find_folder(options.data_root)
        real = folder is not None
        if folder is None:
            folder = make_images(Path(scratch), 64 if options.quick else options.images)
        base = Settings(folder=str(folder), steps=options.steps, images=options.images)
        if options.quick:
            base = Settings(folder=str(folder), steps=2, warmup=1, images=64, batch=8, image_size=64, views="bank:2")
        machine = {**describe_machine(), "images": "Kvasir" if real else "made"}
        if not is_same_machine(results.setdefault("machine", machine), machine):
            parser.error(f"{output} was measured on another machine or set of versions: delete it, or --output")
        for section in sections:
            started = time.perf_counter()
            when = {"date": time.strftime("%Y-%m-%d"), "load_before": os.getloadavg()}
            results[section] = run_section(section, base, options)
            results.setdefault("when", {})[section] = when
            print(f"{section}: {time.perf_counter() - started:.0f} s", flush=True)
    print(write_tables(results, root / PAGE if publish else None))
    if publish:
        write_claim(results, root / README)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
