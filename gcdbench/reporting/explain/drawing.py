"""Maps and images as pictures, with Pillow alone."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from gcdbench.core.arrays import Pixels
from gcdbench.reporting.explain.localisation import Maps, upsample

GAP = 6
LINE = 15
LETTER = 6
"""Pixels that a letter of a column title takes, at most on average."""
TEXT = (30, 30, 30)
PAPER = (255, 255, 255)

# Dark blue over green to yellow: ordered in lightness, and readable with red-green blindness.
_STOPS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
_COLOURS = np.array([[48, 18, 90], [50, 90, 150], [35, 150, 135], [120, 205, 80], [250, 230, 35]], dtype=np.float64)


def stretch(maps: Maps) -> Maps:
    """Each map to [0, 1] between its own minimum and maximum; a constant map to 1/2."""
    low = maps.min(axis=(-2, -1), keepdims=True)
    width = maps.max(axis=(-2, -1), keepdims=True) - low
    return np.where(width > 0, (maps - low) / np.where(width > 0, width, 1), 0.5).astype(np.float32)


def colour(values: Maps) -> Pixels:
    """(..., H, W) in [0, 1] -> (..., H, W, 3) uint8."""
    channels = [np.interp(values, _STOPS, _COLOURS[:, channel]) for channel in range(3)]
    return np.stack(channels, axis=-1).astype(np.uint8)


def draw_map(values: Maps, size: int) -> Pixels:
    """(h, w) -> (size, size, 3): the map's cells as they are, without smoothing what the network does not know."""
    cells = Image.fromarray(colour(stretch(values)))
    return np.asarray(cells.resize((size, size), Image.Resampling.NEAREST))


def draw_overlay(image: Pixels, values: Maps) -> Pixels:
    """(S, S, 3), (h, w) -> (S, S, 3): the map, smoothed, over the greyed image."""
    shade = colour(stretch(upsample(values[None], len(image)))[0]).astype(np.float32)
    grey = image.astype(np.float32).mean(axis=2, keepdims=True)
    mixed: Pixels = (0.5 * grey + 0.5 * shade).astype(np.uint8)
    return mixed


def draw_mask(mask: NDArray[np.bool_]) -> Pixels:
    """(S, S) -> (S, S, 3): white on black."""
    return np.repeat(mask[:, :, None], 3, axis=2).astype(np.uint8) * np.uint8(255)


def draw_sheet(
    rows: Sequence[Sequence[Pixels | None]],
    *,
    columns: Sequence[str] = (),
    captions: Sequence[str] = (),
    title: str = "",
    cell: int = 128,
) -> Image.Image:
    """A table of pictures with titles above its columns and a caption below each row; None leaves a place empty.

    A column title may hold line breaks; lines wider than a column are broken.
    """
    font = ImageFont.load_default()
    columns = [_broken(name, cell // LETTER) for name in columns]
    width = max((len(row) for row in rows), default=1) * (cell + GAP) + GAP
    head = LINE * (max((name.count("\n") + 1 for name in columns), default=0)) + (LINE if title else 0)
    foot = LINE if captions else 0
    height = GAP + head + len(rows) * (cell + foot + GAP)
    texts = [title, *captions]
    width = max([width, *(int(font.getlength(text)) + 2 * GAP for text in texts if text)])
    sheet = Image.new("RGB", (width, height), PAPER)
    pen = ImageDraw.Draw(sheet)
    pen.text((GAP, GAP // 2), title, fill=TEXT, font=font)
    for number, name in enumerate(columns):
        pen.multiline_text(
            (GAP + number * (cell + GAP), GAP // 2 + (LINE if title else 0)), name, TEXT, font, spacing=2
        )
    for line, row in enumerate(rows):
        top = GAP + head + line * (cell + foot + GAP)
        for number, picture in enumerate(row):
            if picture is not None:
                tile = Image.fromarray(picture).resize((cell, cell), Image.Resampling.BILINEAR)
                sheet.paste(tile, (GAP + number * (cell + GAP), top))
        if captions:
            pen.text((GAP, top + cell + 1), captions[line], fill=TEXT, font=font)
    return sheet


def _broken(title: str, letters: int) -> str:
    return "\n".join(part for line in title.split("\n") for part in textwrap.wrap(line, letters))


def save_png(picture: Image.Image, path: Path) -> Path:
    """Write a PNG, making its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path, format="PNG")
    return path
