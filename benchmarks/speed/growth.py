"""The cost model of docs/scale.md, checked against measured runs, and what it says of a million images and more.

    python -m benchmarks.speed.growth

reads scale.json (benchmarks.speed.scale) and writes the tables between the marks of docs/scale.md. What an image, a
view and an image in an epoch cost is taken from the run with 10,000 images; those with fewer and with more check it.
A run's directory holds a model, which has one size, and what is stored of each image, which is compressed: both are
taken from the two smaller runs, and the largest one checks them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.speed.report import put_between_marks, table
from benchmarks.speed.scale import DECODE, PREDICT, TEST_VIEWS, TRAIN, VIEWS, describe
from gcdbench.images.decoding import stored_side
from gcdbench.views.budget import ViewSize
from gcdbench.views.setting import parse_views

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = 10_000
HASH, STORE, REST = "hash the images", "store predictions, score", "split, checks, network"
DIRECTORY, FEATURES = "the run's directory", "features"
SHAPE = {"height": 8, "width": 8, "channels": 112}
"""Lite0's prefix at 128 px."""

WIDTH = 1280
"""Values of its pooled feature, kept for each predicted image in 16 bits."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """How much of everything a run has to do."""

    images: int
    training: int
    predicted: int
    views: int
    epochs: int

    def amounts(self) -> dict[str, int]:
        """By stage."""
        return {
            HASH: self.images,
            DECODE: self.images,
            TEST_VIEWS: self.images,
            VIEWS: self.training * self.views,
            TRAIN: self.training * self.epochs,
            PREDICT: self.predicted,
            STORE: self.predicted,
            REST: self.images,
        }


UNITS = {
    HASH: "image",
    DECODE: "image",
    TEST_VIEWS: "image",
    VIEWS: "stored view",
    TRAIN: "image and epoch",
    PREDICT: "predicted image",
    STORE: "predicted image",
    REST: "image",
}


def find_work(row: Mapping[str, Any], epochs: int) -> Work:
    """What a measured run did."""
    counts = row["counts"]
    training = counts["labelled"] + counts["unlabelled"]
    predicted = counts["unlabelled"] + counts.get("test", 0)
    views = parse_views(row["views"])
    made = views.count + views.fresh * (epochs - 1)
    return Work(images=row["images"], training=training, predicted=predicted, views=made, epochs=epochs)


def unit_costs(row: Mapping[str, Any], epochs: int) -> dict[str, float]:
    """Processor seconds of each stage for one unit of its work."""
    return {stage: row["cpu_seconds"][stage] / amount for stage, amount in find_work(row, epochs).amounts().items()}


def predict_seconds(work: Work, units: Mapping[str, float]) -> dict[str, float]:
    """Processor seconds of each stage."""
    return {stage: amount * units[stage] for stage, amount in work.amounts().items()}


def predict_bytes(work: Work, setting: str) -> dict[str, int]:
    """Bytes of the image store, the stored views and, before they are compressed, the kept features."""
    side = stored_side(128)
    size = ViewSize(images=work.images, training=work.training, **SHAPE)
    return {
        "stores": 3 * side * side * work.images,
        "banks": size.bank_bytes(parse_views(setting)),
        FEATURES: 2 * WIDTH * work.predicted,
    }


def predict_directory(rows: Sequence[Mapping[str, Any]], epochs: int, images: int) -> float:
    """Bytes of a run's directory with so many predicted images: a line through the two smaller runs."""
    first, second = sorted(rows, key=lambda row: int(row["images"]))[:2]
    sizes = [row["disk_bytes"][DIRECTORY] for row in (first, second)]
    counts = [find_work(row, epochs).predicted for row in (first, second)]
    each = (sizes[1] - sizes[0]) / (counts[1] - counts[0])
    return float(sizes[0] + each * (images - counts[0]))


def check(rows: list[dict[str, Any]], epochs: int) -> str:
    """The model against the runs that it was not taken from, for each stage and each kind of file."""
    units = unit_costs(next(row for row in rows if row["images"] == REFERENCE), epochs)
    checked = [(row, find_work(row, epochs)) for row in rows if row["images"] != REFERENCE]
    columns = [f"{row['images']:,}: model, measured, ratio" for row, _ in checked]
    body = []
    for stage, unit in units.items():
        cells = [
            _compare(predict_seconds(work, units)[stage], row["cpu_seconds"][stage], ".1f") for row, work in checked
        ]
        body.append([stage, f"{1e3 * unit:.3f} per {UNITS[stage]}", *cells])
    total = [
        _compare(sum(predict_seconds(work, units).values()), sum(row["cpu_seconds"][stage] for stage in units), ".0f")
        for row, work in checked
    ]
    body.append(["all of these", "", *total])
    files = [
        [
            kind,
            *(
                _compare(predict_bytes(work, row["views"])[kind] / 1e6, row["disk_bytes"][kind] / 1e6, ",.0f")
                for row, work in checked
            ),
        ]
        for kind in ("stores", "banks")
    ]
    row, work = checked[-1]
    kept = _compare(predict_directory(rows, epochs, work.predicted) / 1e6, row["disk_bytes"][DIRECTORY] / 1e6, ",.0f")
    files.append([DIRECTORY, *[""] * (len(checked) - 1), kept])
    head = ["processor seconds", f"a unit, ms, at {REFERENCE:,}", *columns]
    return table(head, body) + "\n\n" + table(["MB", *columns], files)


def _compare(model: float, measured: float, digits: str) -> str:
    return f"{model:{digits}}, {measured:{digits}}, {measured / model:.2f}"


def look_ahead(rows: list[dict[str, Any]], epochs: int, *, views: str = "bank8:6", runs: int = 20) -> str:
    """What a million and ten million images would take with ``runs`` of twenty epochs, in core-hours and bytes."""
    row = next(row for row in rows if row["images"] == max(entry["images"] for entry in rows))
    units, work = unit_costs(row, epochs), find_work(row, epochs)
    body = []
    for images in (10**5, 10**6, 10**7):
        share = images / work.images
        larger = Work(
            images=images,
            training=round(share * work.training),
            predicted=round(share * work.predicted),
            views=parse_views(views).count,
            epochs=20,
        )
        hours = {stage: seconds / 3600 for stage, seconds in predict_seconds(larger, units).items()}
        once = hours[HASH] + hours[DECODE] + hours[TEST_VIEWS] + hours[VIEWS]
        each = sum(hours.values()) - once
        sizes = predict_bytes(larger, views)
        body.append(
            [
                f"{images:,}",
                f"{once:,.1f}",
                f"{each:,.1f}",
                f"{once + runs * each:,.0f}",
                f"{(once + runs * each) / 32 / 24:,.1f}",
                f"{sizes['stores'] / 1e9:,.0f}",
                f"{sizes['banks'] / 1e9:,.0f}",
                f"{sizes[FEATURES] / 1e9:,.1f}",
                f"{4 * WIDTH * larger.predicted / 2**30:,.1f}",
            ]
        )
    header = ["images", "once, core-hours", "each run, core-hours", f"{runs} runs, core-hours", "days on 32 cores"]
    header += ["image store, GB", f"{views}, GB", "features of a run, GB at most", "features in memory, GiB"]
    return table(header, body)


def write_page(results: dict[str, Any], page: Path) -> None:
    """Put the tables between the marks of the page."""
    rows, machine = results["rows"], results["machine"]
    days = " and ".join(sorted({row["date"] for row in rows}))
    text = "\n\n".join(
        [
            f"Measured {days} on {machine['cores']} cores ({machine['cpu']}), torch"
            f" {machine['packages']['torch']}, {machine['kernels']} kernels, budget {results['budget']},"
            f" {results['epochs']} epochs.",
            f"One view of 128 px takes {results['operations']['prefix'] / 1e6:.0f} million operations in Lite0's frozen"
            f" prefix and {results['operations']['tail'] / 1e6:.0f} million in its trained tail, forward.",
            describe(rows),
            f"The model against these runs. What a unit costs is taken from the run with {REFERENCE:,} images, the size"
            " of a run's directory from the two smaller runs; the others check it:",
            check(rows, results["epochs"]),
            "More images, 20 epochs, 6 views in 8 bits, at the costs of the largest run above:",
            look_ahead(rows, results["epochs"]),
        ]
    )
    put_between_marks(text, page, "growth")


def count_operations() -> dict[str, int]:
    """Floating-point operations of one view through Lite0's frozen prefix and through its trained tail at 128 px."""
    from gcdbench.models.cost import InferencePath, count_flops
    from gcdbench.models.lite0 import load_lite0

    backbone = load_lite0("none")
    prefix = count_flops(backbone.prefix, 128)
    return {"prefix": prefix, "tail": count_flops(InferencePath(backbone, None), 128) - prefix}


def main() -> None:
    """Write the tables of docs/scale.md."""
    file = ROOT / "benchmarks" / "speed" / "scale.json"
    results = json.loads(file.read_text(encoding="utf-8"))
    if "operations" not in results:
        results["operations"] = count_operations()
        file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    write_page(results, ROOT / "docs" / "scale.md")


if __name__ == "__main__":
    main()
