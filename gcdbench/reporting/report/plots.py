"""Figures inside the page: inline SVG in the page's own colours, pictures as data."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from gcdbench.core.errors import GCDBenchError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = {".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg"}
PICTURE_LIMIT = 4 * 2**20


class Plots:
    """Turns figures into HTML; ids inside each SVG are made unique, since one page holds many."""

    def __init__(self) -> None:
        self._count = 0

    def embed(self, draw: Callable[[], Figure], label: str) -> str:
        """A figure, or a sentence that says why it is not there."""
        from gcdbench.reporting.figures.style import caption_of, to_svg

        try:
            figure = draw()
            svg, caption = to_svg(figure), caption_of(figure)
        except GCDBenchError as error:
            return f'<p class="soft">{escape(label)}: {escape(error.message)}</p>\n'
        self._count += 1
        prefix = f"plot{self._count}-"
        seen: Counter[str] = Counter()

        def name(found: re.Match[str]) -> str:
            # matplotlib names pictures after their content, and two maps of one figure may be the same.
            seen[found[1]] += 1
            return f'id="{prefix}{found[1]}' + ("" if seen[found[1]] == 1 else f"-{seen[found[1]]}") + '"'

        svg = re.sub(r'\bid="([^"]*)"', name, svg)
        svg = re.sub(r"url\(#", f"url(#{prefix}", svg)
        svg = re.sub(r'href="#', f'href="#{prefix}', svg)
        svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)
        below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        return f'<figure><div class="plot">{svg}</div>{below}</figure>\n'


def picture(path: Path) -> str:
    """An image file as data inside the page; empty when it is none, or too large."""
    kind = PICTURES.get(path.suffix)
    if kind is None or path.is_symlink() or path.stat().st_size > PICTURE_LIMIT:
        return ""
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img src="data:{kind};base64,{data}" alt="{escape(path.stem)}" loading="lazy">'
