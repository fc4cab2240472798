"""How exactly stored views keep what the frozen prefix put out, in 16 and in 8 bits.

python -m benchmarks.speed.rounding '{"folder": "..."}'
"""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.speed.images import open_source
from benchmarks.speed.settings import Settings, parse_settings
from gcdbench.images.image_store import prepare_store
from gcdbench.models.backbone import Backbone
from gcdbench.models.lite0 import load_lite0
from gcdbench.views.augmentation import augment, find_augmentation
from gcdbench.views.building import run_prefix
from gcdbench.views.eight_bit import decode, encode

Hidden = NDArray[np.float32]


def through_eight_bits(hidden: Hidden) -> Hidden:
    """Stored as ``bank8`` does, and read again."""
    return decode(encode(hidden), *hidden.shape[1:])


def through_sixteen_bits(hidden: Hidden) -> Hidden:
    """Stored as ``bank`` does, and read again."""
    return hidden.astype(np.float16).astype(np.float32)


WAYS: dict[str, Callable[[Hidden], Hidden]] = {"16 bits": through_sixteen_bits, "8 bits": through_eight_bits}


def relative_error(hidden: Hidden, stored: Hidden) -> float:
    """Root mean square of the error over the spread of the values."""
    return float(np.sqrt(np.mean((stored - hidden) ** 2)) / hidden.std())


def pooled(backbone: Backbone, hidden: Hidden) -> Tensor:
    """Features of unit length, in double precision."""
    maps = torch.from_numpy(hidden).permute(0, 3, 1, 2)
    with torch.no_grad():
        features = backbone.eval().run_tail(maps).pooled.double()
    return torch.nn.functional.normalize(features, dim=1)


def measure(settings: Settings) -> dict[str, Any]:
    """Error of each way to store, and the cosine distances that it causes, next to that of two views of one image."""
    source = open_source(Path(settings.folder))
    chosen = np.linspace(0, len(source) - 1, min(settings.images, len(source))).astype(int)
    few = dataclasses.replace(
        source, keys=tuple(source.keys[i] for i in chosen), labels=source.labels[chosen], groups=None, partition=None
    )
    backbone = load_lite0()
    with tempfile.TemporaryDirectory() as cache:
        pixels = np.asarray(prepare_store(few, settings.image_size, Path(cache)).pixels)
    ids, recipe = np.arange(len(pixels)), find_augmentation("paper")
    views = [augment(pixels, augmentation=recipe, ids=ids, draw=i, seed=0, size=settings.image_size) for i in (0, 1)]
    first, second = (run_prefix(backbone, view).permute(0, 2, 3, 1).contiguous().numpy() for view in views)
    exact = pooled(backbone, first)

    def distance(hidden: Hidden) -> float:
        return float((1 - (exact * pooled(backbone, hidden)).sum(dim=1)).mean())

    rows = [
        {"stored": name, "error": relative_error(first, way(first)), "distance": distance(way(first))}
        for name, way in WAYS.items()
    ]
    return {"views": len(pixels), "image_size": settings.image_size, "two_views": distance(second), "rows": rows}


def main() -> None:
    """Print the measurement."""
    print(json.dumps(measure(parse_settings())))


if __name__ == "__main__":
    main()
