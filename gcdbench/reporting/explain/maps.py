"""Where a trained method looks: one number for each cell of the feature map, by several definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.images.image_set import ImageSet
from gcdbench.models.backbone import TailOutput

if TYPE_CHECKING:
    from gcdbench.training.parametric import ParametricMethod

Maps = NDArray[np.float32]

ATTENTION = "attention"
ENERGY = "feature energy"
CHUNK = 64


def plain_energy(feature_map: Tensor) -> Tensor:
    """(B, C, H, W) -> (B, H, W): the mean magnitude over channels, for methods that have no attention of their own."""
    return feature_map.abs().mean(dim=1)


def named_maps(method: Any, tail: TailOutput) -> dict[str, Tensor]:
    """Every map a method can offer: its ``attention(tail)``, its ``attention_alternatives(tail)``, the plain energy."""
    maps: dict[str, Tensor] = {}
    attention = getattr(method, "attention", None)
    own = attention(tail) if attention is not None else None
    if own is not None:
        maps[ATTENTION] = own
    maps[ENERGY] = plain_energy(tail.map)
    alternatives = getattr(method, "attention_alternatives", None)
    if alternatives is not None:
        maps.update(alternatives(tail))
    return maps


def attention_maps(method: ParametricMethod, store: Pixels, ids: IntArray) -> dict[str, Maps]:
    """Maps by name, each (N, h, w), of the test views of ``ids``; the method's own first where it has one."""
    method.embed(ImageSet(ids=ids[:0], store=store))  # opens the store
    method.backbone.eval()
    for module in method.extras.values():
        module.eval()
    parts: dict[str, list[Maps]] = {}
    with torch.no_grad():
        for start in range(0, len(ids), CHUNK):
            hidden = method.views.test(ids[start : start + CHUNK]).to(method.device)
            for name, value in named_maps(method, method.backbone.run_tail(hidden)).items():
                parts.setdefault(name, []).append(value.float().cpu().numpy())
    return {name: np.concatenate(values) for name, values in parts.items()}
