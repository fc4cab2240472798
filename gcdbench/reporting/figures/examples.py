"""Images of a run in groups: old classes named, new ones found, and new ones taken for old."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gcdbench.core.arrays import Pixels
from gcdbench.core.errors import ConfigError
from gcdbench.reporting.figures.style import INK, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 96
"""Pixels of an image in the figure."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """One image, (S, S, 3) uint8, and what is written below it."""

    pixels: Pixels
    caption: str


def _small(pixels: Pixels) -> Pixels:
    """At most ``SIDE`` pixels wide: a figure of twenty images should stay a small file."""
    from PIL import Image

    if len(pixels) <= SIDE:
        return pixels
    return np.asarray(Image.fromarray(pixels).resize((SIDE, SIDE), Image.Resampling.LANCZOS))


def draw_examples(groups: Mapping[str, Sequence[Example]], title: str) -> Figure:
    """One line of images for each group, with the group's name above it; a group without images keeps its line."""
    columns = max(map(len, groups.values()), default=0)
    if columns == 0:
        raise ConfigError("There is no image to show.")
    figure, axes = new_figure(columns, len(groups), width=1.25, height=1.62)
    figure.set_layout_engine("constrained", h_pad=0.16, w_pad=0.03)
    for axis in axes:
        axis.axis("off")
    for line, (name, examples) in enumerate(groups.items()):
        heading = name if examples else f"{name}: none"
        first = axes[line * columns]
        name_above = first.text(0, 1.06, heading, transform=first.transAxes, va="bottom", fontsize=9, color=INK)
        name_above.set_in_layout(False)  # it is wider than one image, and must not push the next one aside
        for axis, example in zip(axes[line * columns :], examples, strict=False):
            axis.imshow(_small(example.pixels), interpolation="none")
            axis.text(0.5, -0.05, example.caption, transform=axis.transAxes, ha="center", va="top", fontsize=6)
    figure.suptitle(title, fontsize=8, x=0.01, ha="left", color=INK)
    return figure
