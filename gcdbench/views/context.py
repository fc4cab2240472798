"""What making views needs to know of a run. A method's ``RunContext`` fits without knowing this protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from gcdbench.core.arrays import IntArray
from gcdbench.models.backbone import Backbone


class ViewContext(Protocol):
    """Network, size, kind of views, and where what is made is kept."""

    @property
    def backbone(self) -> Backbone:
        """The run's own copy of the network."""

    @property
    def load_backbone(self) -> Callable[[], Backbone] | None:
        """Makes another copy with the pretrained weights."""

    @property
    def image_size(self) -> int:
        """Side of the network's input in pixels."""

    @property
    def device(self) -> str:
        """Where the network runs."""

    @property
    def views(self) -> str:
        """Where views come from (see :mod:`gcdbench.views.setting`)."""

    @property
    def augmentation(self) -> str:
        """Name of the augmentation."""

    @property
    def training_rows(self) -> IntArray | None:
        """Rows of the store that may be trained on, ascending, whatever the split; None means all of them."""

    @property
    def store_key(self) -> str:
        """Identity of the image store; empty where nothing may be kept."""

    @property
    def cache_dir(self) -> Path | None:
        """Where view banks and features are kept."""

    @property
    def log(self) -> Callable[[Mapping[str, Any]], None]:
        """Receives notes and progress."""
