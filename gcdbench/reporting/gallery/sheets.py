"""Thumbnails in sheets: a page with thousands of images holds a few large pictures instead."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass

import numpy as np
from PIL import Image

from gcdbench.core.arrays import IntArray, Pixels

SMALL, LARGE = 48, 112
"""Sides of thumbnails in pixels: on the map, and in a cluster's rows."""
PER_ROW = 24
PER_SHEET = PER_ROW * PER_ROW
QUALITY = 72
SMALLER, LEAST = 0.8, 24
"""Thumbnails that take too much room are drawn again at this share of their side, but not below the least."""


@dataclass(frozen=True, kw_only=True)
class Sheets:
    """Thumbnail number i is in sheet i // PER_SHEET, row by row. pictures: JPEG as ``data:`` addresses."""

    side: int
    count: int
    pictures: tuple[str, ...]


def make_sheets(store: Pixels, rows: IntArray, side: int, most: int | None = None) -> Sheets:
    """Thumbnails of these rows of an image store, in their order; smaller ones where they would take more than
    ``most`` bytes in the page."""
    while True:
        pictures = [_sheet(store, rows[first : first + PER_SHEET], side) for first in range(0, len(rows), PER_SHEET)]
        if most is None or sum(map(len, pictures)) <= most or side <= LEAST:
            return Sheets(side=side, count=len(rows), pictures=tuple(pictures))
        side = max(LEAST, int(side * SMALLER))


def _sheet(store: Pixels, rows: IntArray, side: int) -> str:
    lines = -(-len(rows) // PER_ROW)
    sheet = Image.new("RGB", (PER_ROW * side, lines * side), (128, 128, 128))
    for place, row in enumerate(rows):
        picture = Image.fromarray(np.asarray(store[row])).resize((side, side), Image.Resampling.BILINEAR)
        sheet.paste(picture, (place % PER_ROW * side, place // PER_ROW * side))
    out = io.BytesIO()
    sheet.save(out, format="JPEG", quality=QUALITY, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(out.getvalue()).decode()
