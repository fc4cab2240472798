"""The images both loops are timed on: real files where there are some, made ones otherwise."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from PIL import Image

from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.datasets.sources.folder import make_folder

QUALITY = 88


def find_folder(data_root: Path | None) -> Path | None:
    """Kvasir's class folders below ``data_root`` or ``GCDBENCH_DATA``, if they are there."""
    root = data_root or (Path(os.environ["GCDBENCH_DATA"]) if os.environ.get("GCDBENCH_DATA") else None)
    folder = root / "kvasir" / "kvasir-dataset" if root is not None else None
    return folder if folder is not None and folder.is_dir() else None


def make_images(folder: Path, count: int, classes: int = 8, side: int = 256) -> Path:
    """Write ``count`` smooth coloured JPEG files into class folders."""
    rng = np.random.default_rng(0)
    for number in range(count):
        place = folder / f"class-{number % classes}"
        place.mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(rng.integers(0, 256, (12, 12, 3), dtype=np.uint8))
        coarse.resize((side, side), Image.Resampling.BICUBIC).save(place / f"{number}.jpg", quality=QUALITY)
    return folder


def open_source(folder: Path) -> DatasetSource:
    """The images of a folder of class folders, as files."""
    return make_folder(DatasetRequest(name="folder", argument=str(folder)))
