"""The error decomposition as 2×2 maps side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gcdbench.figures.style import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CELLS = (("true_old_confusion", "false_new"), ("false_old", "true_new_confusion"))
NAMES = {
    "true_old_confusion": "true-old\nconfusion",
    "false_new": "false-new",
    "false_old": "false-old",
    "true_new_confusion": "true-new\nconfusion",
}


@dataclass(frozen=True, kw_only=True)
class ErrorPanel:
    """One map: the four terms in percent of D_u, and a title."""

    title: str
    terms: Mapping[str, float]


def draw_errors(panels: Sequence[ErrorPanel], columns: int) -> Figure:
    """Maps in ``columns`` columns, one colour scale for all: rows are the truth, columns the prediction."""
    rows = -(-len(panels) // columns)
    figure, axes = new_figure(columns, rows, width=2.7, height=2.6)
    top = max((value for panel in panels for value in panel.terms.values()), default=1.0) or 1.0
    for axis, panel in zip(axes, panels, strict=False):
        values = [[panel.terms.get(name, 0.0) for name in line] for line in CELLS]
        axis.imshow(values, cmap="OrRd", vmin=0, vmax=top)
        for y, line in enumerate(CELLS):
            for x, name in enumerate(line):
                colour = "white" if values[y][x] > 0.6 * top else "black"
                text = f"{values[y][x]:.2f} %" if name in panel.terms else "—"
                axis.text(x, y - 0.08, text, ha="center", va="center", color=colour, fontsize=11, fontweight="bold")
                axis.text(x, y + 0.24, NAMES[name], ha="center", va="center", color=colour, fontsize=7)
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
