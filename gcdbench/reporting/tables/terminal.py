"""A table on a terminal: the layout that fits its width."""

from __future__ import annotations

from dataclasses import replace

from gcdbench.reporting.tables.grid import Grid, Layout, lay_out
from gcdbench.reporting.tables.model import ResultTable
from gcdbench.reporting.tables.render import render_text


def fit(table: ResultTable, layout: Layout, width: int) -> Grid:
    """The grid; ``auto`` becomes ``tall`` where a window of ``width`` columns is too narrow for it."""
    grid = lay_out(table, layout)
    body = render_text(replace(grid, caption="", notes=()))
    return lay_out(table, "tall") if layout == "auto" and max(map(len, body.splitlines())) > width else grid
