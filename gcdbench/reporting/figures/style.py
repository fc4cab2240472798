"""One look for all figures: colours that colour-blind readers can tell apart, and the same file every time."""

from __future__ import annotations

import io
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcdbench.core.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#1f2430"
"""Colour of text and axes; the report replaces it by the page's own."""
SCORE_COLOURS = {"all": "#3b6fb6", "old": "#d17f1f", "new": "#2f8f5b"}
CYCLE = ("#3b6fb6", "#d17f1f", "#2f8f5b", "#b0407a", "#7a5ea8", "#8a6d3b", "#3a9aa5", "#c14b3a", "#6b7f2a", "#5b6470")
LEGEND: Any = {"frameon": False, "labelcolor": INK}
SUFFIXES = (".svg", ".pdf", ".png")

SETTINGS: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.hashsalt": "gcdbench",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "savefig.bbox": "tight",
}


def new_figure(columns: int = 1, rows: int = 1, *, width: float = 3.2, height: float = 2.8) -> tuple[Figure, list[Any]]:
    """A figure with a grid of axes (as a flat list), without a window and without global state."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError(
            "Figures need matplotlib, which is not installed.", hint="pip install 'gcdbench[figures]'"
        ) from None
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
    return figure, [axis for line in axes for axis in line]


def add_caption(figure: Figure, text: str) -> None:
    """Small print below a figure: what was measured and what its bars mean, so that it can stand alone.

    It is drawn when the figure is saved; a page has it as text of its own (:func:`caption_of`).
    """
    figure.set_label(text)


def caption_of(figure: Figure) -> str:
    """What :func:`add_caption` was given, or nothing."""
    return str(figure.get_label() or "")


def draw_caption(figure: Figure) -> None:
    """Put the caption into the picture, for a file that has to stand alone."""
    text = caption_of(figure)
    if not text:
        return
    lines = textwrap.wrap(text, int(figure.get_figwidth() * 21), break_on_hyphens=False)
    figure.set_figheight(figure.get_figheight() + 0.11 * len(lines))
    figure.supxlabel("\n".join(lines), fontsize=6, x=0.01, ha="left", color=INK)


def _write(figure: Figure, target: Any, kind: str, *, transparent: bool = False) -> None:
    import matplotlib

    metadata = {"svg": {"Date": None, "Creator": "gcdbench"}, "pdf": {"CreationDate": None}}.get(kind, {})
    with matplotlib.rc_context(SETTINGS):
        figure.savefig(target, format=kind, dpi=200, metadata=metadata, transparent=transparent)


def save(figure: Figure, path: Path) -> None:
    """Write SVG, PDF or PNG by the file's suffix."""
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"'{path}' must end in {', '.join(SUFFIXES)}.")
    buffer = io.BytesIO()
    draw_caption(figure)
    _write(figure, buffer, path.suffix[1:])
    from gcdbench.core.files import write_bytes

    write_bytes(path, buffer.getvalue())


def to_svg(figure: Figure) -> str:
    """SVG for embedding in a page: text in the page's colour, its background behind it, no XML prologue."""
    buffer = io.StringIO()
    _write(figure, buffer, "svg", transparent=True)
    text = buffer.getvalue()
    return text[text.index("<svg") :].replace(INK, "currentColor")
