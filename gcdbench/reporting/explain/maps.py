"""Where a trained method looks: one number for each cell of the feature map, by several definitions."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.models.backbone import TailOutput
from gcdbench.models.predict import Model
from gcdbench.training.method import OffersAlternatives, ShowsAttention

Maps = NDArray[np.float32]

ATTENTION = "attention"
ENERGY = "feature energy"
CHUNK = 64


def plain_energy(feature_map: Tensor) -> Tensor:
    """(B, C, H, W) -> (B, H, W): the mean magnitude over channels, for methods that have no attention of their own."""
    return feature_map.abs().mean(dim=1)


def named_maps(method: object, tail: TailOutput) -> dict[str, Tensor]:
    """Every map a method can offer: its own attention, the plain energy, and its alternatives."""
    maps: dict[str, Tensor] = {}
    own = method.attention(tail) if isinstance(method, ShowsAttention) else None
    if own is not None:
        maps[ATTENTION] = own
    maps[ENERGY] = plain_energy(tail.map)
    if isinstance(method, OffersAlternatives):
        maps.update(method.attention_alternatives(tail))
    return maps


def attention_maps(model: Model, method: object, store: Pixels, ids: IntArray) -> dict[str, Maps]:
    """Maps by name, each (N, h, w), of the test views of ``ids``; the method's own first where it has one.

    ``method`` is the run's, with the model's weights, or None where its code is not available.
    """
    parts: dict[str, list[Maps]] = {}
    with torch.no_grad():
        for start in range(0, len(ids), CHUNK):
            tail = model.run_tail(np.asarray(store[ids[start : start + CHUNK]]))
            for name, value in named_maps(method, tail).items():
                parts.setdefault(name, []).append(value.float().cpu().numpy())
    return {name: np.concatenate(values) for name, values in parts.items()}
