"""Accuracies with intervals: bars over methods, and curves over a setting."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gcdbench.reporting.figures.style import CYCLE, INK, LEGEND, SCORE_COLOURS, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class Point:
    """A mean with its interval, and the published value where there is one.

    over_images: the interval is of one run, over its images, and says nothing about other seeds.
    """

    label: str
    mean: float | None
    low: float | None = None
    high: float | None = None
    x: float | None = None
    reported: float | None = None
    over_images: bool = False


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One set of axes: points of each score, and what the scores are called in the legend."""

    title: str
    series: Mapping[str, Sequence[Point]]
    names: Mapping[str, str] = field(default_factory=dict)


def _reach(points: Sequence[Point]) -> list[list[float]]:
    """Lengths of the error bars below and above."""
    below = [p.mean - p.low if p.mean is not None and p.low is not None else 0.0 for p in points]
    above = [p.high - p.mean if p.mean is not None and p.high is not None else 0.0 for p in points]
    return [below, above]


def _intervals(axis: Any, places: Sequence[float], points: Sequence[Point]) -> None:
    """Capped lines over seeds; pale ones without caps over the images of a single run."""
    for over_images, look in ((False, {"capsize": 1.5}), (True, {"alpha": 0.45})):
        chosen = [(x, p) for x, p in zip(places, points, strict=True) if p.over_images is over_images]
        if chosen:
            xs, kept = zip(*chosen, strict=True)
            heights = [p.mean or 0.0 for p in kept]
            axis.errorbar(xs, heights, yerr=_reach(kept), fmt="none", ecolor=INK, elinewidth=0.8, **look)


def _colour(score: str, index: int) -> str:
    return SCORE_COLOURS.get(score, CYCLE[index % len(CYCLE)])


def draw_bars(panels: Sequence[Panel]) -> Figure:
    """One set of axes per panel; bars are measured means with 95 % intervals, diamonds published values."""
    longest = max((len(points) for panel in panels for points in panel.series.values()), default=1)
    columns = 2 if len(panels) > 1 and longest <= 5 else 1
    figure, axes = new_figure(columns, -(-len(panels) // columns), width=max(4.0, 0.75 * longest + 1.5), height=2.6)
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    for axis, panel in zip(axes, panels, strict=False):
        width = 0.8 / max(1, len(panel.series))
        shown = False
        for i, (score, points) in enumerate(panel.series.items()):
            places = [j + (i - (len(panel.series) - 1) / 2) * width for j in range(len(points))]
            heights = [p.mean or 0.0 for p in points]
            axis.bar(places, heights, width * 0.92, color=_colour(score, i), label=panel.names.get(score, score))
            _intervals(axis, places, points)
            published = [(x, p.reported) for x, p in zip(places, points, strict=True) if p.reported is not None]
            if published:
                shown = True
                axis.scatter(
                    *zip(*published, strict=True), marker="D", s=12, facecolor="white", edgecolor="black", zorder=3
                )
        labels = [textwrap.fill(p.label, 13, break_long_words=False) for p in next(iter(panel.series.values()), ())]
        axis.set_xticks(range(len(labels)), labels, fontsize=7)
        axis.set_ylim(0, 100)
        axis.set_ylabel("percent of D_u")
        axis.set_title(panel.title + (" (◇ published)" if shown else ""), loc="left")
    _shared_legend(figure, axes[0])
    return figure


def draw_curves(panels: Sequence[Panel]) -> Figure:
    """One panel per setting; error bars are 95 % intervals, diamonds published values."""
    columns = min(4, max(1, len(panels)))
    rows = -(-len(panels) // columns)
    figure, axes = new_figure(columns, rows, width=2.7, height=2.4)
    for axis, panel in zip(axes, panels, strict=False):
        places = sorted({p.x for points in panel.series.values() for p in points if p.x is not None})
        step = min((b - a for a, b in pairwise(places)), default=1.0)
        for i, (score, points) in enumerate(panel.series.items()):
            shift = 0.12 * step * (i - (len(panel.series) - 1) / 2)  # error bars side by side, not on top of each other
            _curve(axis, points, shift, _colour(score, i), panel.names.get(score, score))
        axis.set_xticks(places, [f"{x:g}" for x in places], fontsize=7)
        axis.set_title(panel.title)
        axis.set_ylabel("percent")
        if len(places) > 1:
            axis.set_xlim(places[0] - 0.4 * step, places[-1] + 0.4 * step)
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    _shared_legend(figure, axes[0])
    return figure


def _shared_legend(figure: Figure, axis: Any) -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=8, **LEGEND)


def _curve(axis: Any, points: Sequence[Point], shift: float, colour: str, label: str) -> None:
    drawn = [p for p in points if p.mean is not None and p.x is not None]
    places = [p.x + shift for p in drawn if p.x is not None]
    means = [p.mean for p in drawn]
    axis.errorbar(
        places,
        means,
        yerr=_reach(drawn),
        color=colour,
        label=label,
        marker="o",
        markersize=3.5,
        elinewidth=0.8,
        capsize=1.5,
    )
    published = [(p.x + shift, p.reported) for p in points if p.reported is not None and p.x is not None]
    if published:
        axis.scatter(*zip(*published, strict=True), marker="D", s=16, facecolor="none", edgecolor=colour)
