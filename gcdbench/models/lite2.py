"""EfficientNet-Lite2: Lite0's code, wider and deeper."""

from __future__ import annotations

from gcdbench.models.lite0 import Lite, load_lite
from gcdbench.models.lite_layouts import LITE2


def load_lite2(weights: str | None = None) -> Lite:
    """EfficientNet-Lite2 with its ImageNet weights, those of the file ``weights``, or random ones (``"none"``)."""
    return load_lite(LITE2, weights)
