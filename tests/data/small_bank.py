"""A small network and a run on it, for tests of stored views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from gcdbench.core.arrays import Pixels
from gcdbench.models.backbone import Backbone
from gcdbench.training.context import RunContext
from gcdbench.views.bank import open_views
from gcdbench.views.sources import StoredViews

SIZE, SIDE, COUNT = 16, 18, 70  # more images than one chunk


class SmallBackbone(Backbone):
    """A convolution as prefix, another as tail."""

    name = "small"
    channels = 6
    stride = 4

    def __init__(self) -> None:
        super().__init__()
        self.weights_sha256 = "none"
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.prefix = nn.Conv2d(3, 5, 3, stride=2, padding=1).requires_grad_(False).eval()
            self.tail = nn.Sequential(nn.Conv2d(5, 6, 3, stride=2, padding=1), nn.BatchNorm2d(6))


def context(cache: Path | None, **changes: Any) -> RunContext:
    """A run that keeps its banks in ``cache``."""
    settings: dict[str, Any] = {
        "seed": 0,
        "image_size": SIZE,
        "views": "bank:3",
        "store_key": "store-a",
        "cache_dir": cache,
        "load_backbone": SmallBackbone,
    }
    return RunContext(**{**settings, **changes})


def opened(cache: Path | None, store: Pixels, **changes: Any) -> StoredViews:
    """Stored views of the first epoch, as a run opens them."""
    source = open_views(context(cache, **changes), store)
    assert isinstance(source, StoredViews)
    source.start_epoch(0)
    return source


def banks(cache: Path) -> list[Path]:
    """Folders of the training views that are kept."""
    return sorted({path.parent for path in (cache / "banks").glob("*/view-*.npy")})


def view_files(cache: Path) -> list[str]:
    """Names of the views that are kept."""
    return sorted(path.stem for path in (cache / "banks").glob("*/view-*.npy"))
