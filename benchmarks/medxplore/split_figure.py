"""The report's figure: All of every run over splits, one point per split and method; failed runs are hollow."""

from __future__ import annotations

import io
from collections.abc import Sequence

from benchmarks.medxplore.outcomes import FAILURE, worst_exchange
from benchmarks.medxplore.split_tables import read_splits
from gcdbench.api import CellRecord

NAME = "splits-kvasir.svg"


def split_figure(records: Sequence[CellRecord]) -> str | None:
    """The figure as SVG, the same for the same runs; None before the first run."""
    rows = read_splits("main", "kvasir", records)
    shown = [key for key in rows.titles if rows.runs[key]]
    if not shown:
        return None
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with matplotlib.rc_context({"svg.hashsalt": "gcdbench", "svg.fonttype": "none", "font.size": 8}):
        figure, axes = pyplot.subplots(figsize=(7, 0.6 + 0.28 * len(shown)), layout="constrained")
        for place, key in enumerate(reversed(shown)):
            for run in rows.runs[key]:
                failed = worst_exchange(run) >= FAILURE
                axes.plot(run.scores["all"], place, "o", color="#1f5f8b", fillstyle="none" if failed else "full")
        axes.set_yticks(range(len(shown)), [rows.titles[key] for key in reversed(shown)])
        axes.set_xlabel("All, percent of D_u; one point per split; hollow: two new classes are mixed")
        axes.grid(axis="x", linewidth=0.3)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
        pyplot.close(figure)
    return out.getvalue()
