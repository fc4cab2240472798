"""Views stored in 8 bits against 16: accuracy, size and time of SimGCD on three splits of Kvasir.

    gcdbench sweep benchmarks/speed/view_bits.toml --preset laptop --runs benchmarks/medxplore/runs
    python -m benchmarks.speed.view_bits

The second line puts the stored runs' figures into docs/speed.md.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import gcdbench
from benchmarks.speed.growth import SHAPE
from benchmarks.speed.report import put_between_marks, table
from gcdbench.views.budget import ViewSize
from gcdbench.views.setting import parse_views

ROOT = Path(__file__).resolve().parents[2]
STORE, PAGE = ROOT / "benchmarks" / "medxplore" / "runs", ROOT / "docs" / "speed.md"
KINDS = ("bank:16", "bank8:16")
SCORES = {"all": "All", "old": "Old", "new": "New", "false_old": "false-old"}
SPLITS = (1, 2, 3)
IMAGES = 4000


def choose(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs of SimGCD on Kvasir that differ in their split and the bits of their views only."""
    wanted = {
        "status": "done",
        "dataset": "kvasir",
        "method": "simgcd",
        "variant": "",
        "protocol": "paper-stated",
        "preset": "laptop",
        "backbone": "efficientnet-lite0",
        "image_size": 128,
        "training.epochs": 20,
    }
    chosen = (runs[list(wanted)] == pd.Series(wanted)).all(axis=1)
    same_split = runs["seed"].isin(SPLITS) & (runs["seed"] == runs["protocol.split_seed"])
    return runs[chosen & same_split & runs["views"].isin(KINDS)]


def describe(runs: pd.DataFrame) -> str:
    """A row for each way to store: every split's All, medians, bytes and minutes; without all runs, a sentence."""
    chosen = choose(runs)
    if chosen.groupby("views")["seed"].nunique().reindex(KINDS, fill_value=0).min() < len(SPLITS):
        return "Not measured yet: `gcdbench sweep benchmarks/speed/view_bits.toml` makes the runs."
    size = ViewSize(images=IMAGES, training=IMAGES, **SHAPE)
    rows = []
    for kind in KINDS:
        own = chosen[chosen["views"] == kind].set_index("seed").loc[list(SPLITS)]
        cells = [" / ".join(f"{value:.1f}" for value in own[key].astype(float).tolist()) for key in SCORES]
        room = f"{size.bank_bytes(parse_views(kind)) / 1e9:.2f}"
        rows.append([f"`{kind}`", *cells, room, f"{own['seconds'].median() / 60:.1f}"])
    title = "SimGCD on Kvasir, the same three splits and seeds, views in 16 and in 8 bits:"
    return f"{title}\n\n" + table(["views", *SCORES.values(), "GB", "minutes, median"], rows)


def main() -> None:
    """Write the table."""
    text = describe(gcdbench.results(STORE))
    print(text)
    put_between_marks(text, PAGE, "view bits")


if __name__ == "__main__":
    main()
