"""Write the result tables of README.md from the stored runs, or say whether they follow from them.

    python -m benchmarks.readme [--check]

A table stands between ``<!-- runs: DATASET -->`` and ``<!-- end of runs -->``. It shows the runs of preset ``laptop``
as that preset has them: runs with other views or another image size have tables of their own.
"""

from __future__ import annotations

import argparse
import re
import statistics
from collections.abc import Sequence
from pathlib import Path

from gcdbench.presets import get_preset
from gcdbench.store.index import load_runs
from gcdbench.store.rundir import DONE
from gcdbench.tables.records import CellRecord, cell_records

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "benchmarks" / "results" / "runs"
METHODS = (
    "kmeans", "ss-kmeans", "rs-plus", "uno-plus", "orca", "gcd", "dccl", "cms", "simgcd", "legogcd", "nguf-approx",
    "medxplore",
)  # fmt: skip
SCORES = {
    "all": "All",
    "old": "Old",
    "new": "New",
    "true_old_confusion": "true-old",
    "false_new": "false-new",
    "false_old": "**false-old**",
    "true_new_confusion": "true-new",
}
BLOCK = re.compile(r"(?P<begin><!-- runs: (?P<dataset>\S+) -->\n).*?(?P<end><!-- end of runs -->)", re.DOTALL)


def is_plain(record: CellRecord) -> bool:
    """Whether a run has the preset's own views and image size; a method that is not trained has no views."""
    settings = get_preset("laptop").settings
    same_views = record.identity.get("views", settings.views) == settings.views or not record.identity.get("training")
    return record.preset == "laptop" and record.image_size == settings.image_size and same_views


def summarise(values: Sequence[float]) -> str:
    """Mean, and the standard deviation where there is one."""
    mean = f"{statistics.mean(values):.1f}"
    return f"{mean} ± {statistics.stdev(values):.1f}" if len(values) > 1 else mean


def result_table(records: Sequence[CellRecord], dataset: str) -> str:
    """One line for each method and variant on ``dataset``."""
    groups: dict[tuple[str, str], list[CellRecord]] = {}
    for record in sorted(records, key=lambda record: record.seed):
        if record.dataset == dataset and record.status == DONE and is_plain(record):
            groups.setdefault((record.method, record.variant), []).append(record)
    lines = [" | ".join(["| method | n | All of each seed", *SCORES.values()]) + " |", "|---" * (3 + len(SCORES)) + "|"]
    place = {method: number for number, method in enumerate(METHODS)}  # any other method comes last
    for method, variant in sorted(groups, key=lambda key: (place.get(key[0], len(place)), key)):
        runs = groups[method, variant]
        if len({run.settings for run in runs}) > 1:
            raise SystemExit(f"Runs of {method} {variant} on {dataset} differ in more than the seed.")
        name = f"`{method}`" + (f", variant `{variant}`" if variant else "")
        seeds = ", ".join(f"{run.scores['all']:.1f}" for run in runs)
        cells = (summarise([run.scores[score] for run in runs]) for score in SCORES)
        lines.append(" | ".join([f"| {name}", str(len(runs)), seeds, *cells]) + " |")
    return "\n".join(lines)


def fill(page: str, records: Sequence[CellRecord]) -> str:
    """The page with every marked table made anew."""
    return BLOCK.sub(
        lambda found: f"{found['begin']}\n{result_table(records, found['dataset'])}\n\n{found['end']}", page
    )


def main() -> None:
    """Write README.md, or check it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readme", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail where the tables do not follow")
    options = parser.parse_args()
    path = ROOT / "README.md"
    page = path.read_text(encoding="utf-8")
    filled = fill(page, cell_records(load_runs(RUNS)))
    if options.check:
        raise SystemExit(0 if filled == page else "README.md's tables do not follow from the stored runs.")
    path.write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
