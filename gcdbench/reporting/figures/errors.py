"""The error decomposition as 2×2 maps side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gcdbench.metrics.error_terms import BY_MAP, TERMS
from gcdbench.reporting.figures.style import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CELLS = (TERMS[:2], TERMS[2:])
"""Above what is old in truth, below what is new; left what was taken for old, right what was taken for new."""
NAMES = {score.key: score.title.replace(" ", "\n") for score in BY_MAP}


@dataclass(frozen=True, kw_only=True)
class ErrorPanel:
    """One map: the four terms in percent of D_u with their sd over runs where it is known, and a title."""

    title: str
    terms: Mapping[str, float]
    spread: Mapping[str, float] = field(default_factory=dict)


def draw_errors(panels: Sequence[ErrorPanel], columns: int) -> Figure:
    """Maps in ``columns`` columns, one colour scale for all: rows are the truth, columns the prediction."""
    rows = -(-len(panels) // columns)
    figure, axes = new_figure(columns, rows, width=2.9, height=2.6)
    top = max((value for panel in panels for value in panel.terms.values()), default=1.0) or 1.0
    for axis, panel in zip(axes, panels, strict=False):
        values = [[panel.terms.get(name, 0.0) for name in line] for line in CELLS]
        axis.imshow(values, cmap="OrRd", vmin=0, vmax=top)
        for y, line in enumerate(CELLS):
            for x, name in enumerate(line):
                colour = "white" if values[y][x] > 0.6 * top else "black"
                text = f"{values[y][x]:.2f} %" if name in panel.terms else "—"
                axis.text(x, y - 0.16, text, ha="center", va="center", color=colour, fontsize=11, fontweight="bold")
                if name in panel.spread:
                    sd = f"± {panel.spread[name]:.2f}"
                    axis.text(x, y + 0.06, sd, ha="center", va="center", color=colour, fontsize=8)
                axis.text(x, y + 0.29, NAMES[name], ha="center", va="center", color=colour, fontsize=7)
        axis.set_xticks([0, 1], ["old", "new"])
        axis.set_yticks([0, 1], ["old", "new"])
        axis.set_xlabel("taken for")
        axis.set_ylabel("truth")
        axis.set_title(panel.title)
        axis.spines[:].set_visible(False)
        axis.tick_params(length=0)
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    return figure
