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


@dataclass(frozen=True, kw_only=True)
class Sheets:
    """Thumbnail number i lies in sheet i // PER_SHEET, row by row. pictures: JPEG as ``data:`` addresses."""

    side: int
    count: int
    pictures: tuple[str, ...]


def make_sheets(store: Pixels, rows: IntArray, side: int) -> Sheets:
    """Thumbnails of these rows of an image store, in their order."""
    pictures = [_sheet(store, rows[first : first + PER_SHEET], side) for first in range(0, len(rows), PER_SHEET)]
    return Sheets(side=side, count=len(rows), pictures=tuple(pictures))


def _sheet(store: Pixels, rows: IntArray, side: int) -> str:
    lines = -(-len(rows) // PER_ROW)
    sheet = Image.new("RGB", (PER_ROW * side, lines * side), (128, 128, 128))
    for place, row in enumerate(rows):
        picture = Image.fromarray(np.asarray(store[row])).resize((side, side), Image.Resampling.BILINEAR)
        sheet.paste(picture, (place % PER_ROW * side, place // PER_ROW * side))
    out = io.BytesIO()
    sheet.save(out, format="JPEG", quality=QUALITY, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(out.getvalue()).decode()
