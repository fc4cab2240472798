"""gcdbench: a benchmark toolkit for generalized category discovery.

    import gcdbench

    run = gcdbench.run(method="simgcd", dataset="phantom", preset="smoke")
    run.scores["all"], run.scores["false_old"]
    gcdbench.results("runs")          # a DataFrame, one row per run
    gcdbench.load(run).predict("new_images/")

Importing this is cheap: torch and pandas are imported when they are needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from gcdbench.reporting.frontdoor import Discovery, Run, Table, discover, load, results, run, score, sweep, table

__all__ = ["Discovery", "Run", "Table", "__version__", "discover", "load", "results", "run", "score", "sweep", "table"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("gcdbench.reporting.frontdoor"), name)
    raise AttributeError(f"module 'gcdbench' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
