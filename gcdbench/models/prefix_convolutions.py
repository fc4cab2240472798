"""Convolutions of a frozen stage on the CPU: activations in the pass that writes the output, padding where it is cheap.

An activation of its own reads and writes the whole map once more, and maps of a separable network are large while its
convolutions are small: Lite0's prefix is 1.4 times as fast this way. ResNet-18's gains nothing. The arithmetic and its
order stay the same.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import torch
from torch import Tensor, nn

from gcdbench.models.short_cuts import short_cuts_serve

Activation = Literal["none", "relu6"]
Frame = tuple[int, int, int, int]
"""Cells left, right, above and below."""

ATTRIBUTES: dict[str, tuple[str, list[float]]] = {
    "none": ("none", []),
    "relu6": ("hardtanh", [0.0, 6.0]),
}


@lru_cache(maxsize=1)
def _fused() -> Any:
    """oneDNN's convolution with post-operations, which torch's compiler uses, or None where torch lacks it."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return None
    return getattr(torch.ops.mkldnn, "_convolution_pointwise", None)


def usable(x: Tensor) -> bool:
    """Whether fused convolutions can serve this tensor: float32 on the CPU and nothing to remember for a gradient."""
    if x.dtype != torch.float32 or torch.is_grad_enabled():
        return False
    return short_cuts_serve(x) and _fused() is not None


def convolve(x: Tensor, conv: nn.Conv2d, padding: tuple[int, int], activation: Activation) -> Tensor:
    """activation(conv(x)) with ``padding`` in place of the module's own."""
    name, scalars = ATTRIBUTES[activation]
    out: Tensor = _fused()(
        x, conv.weight, conv.bias, padding, conv.stride, conv.dilation, conv.groups, name, scalars, ""
    )
    return out


def pad(x: Tensor, frame: Frame) -> Tensor:
    """Zeros around ``x``, channels-last. torch's own pad writes the whole map twice."""
    left, right, top, bottom = frame
    count, channels, height, width = x.shape
    shape = (count, channels, height + top + bottom, width + left + right)
    y = torch.empty(shape, dtype=x.dtype, memory_format=torch.channels_last)
    y[:, :, top : top + height, left : left + width] = x
    return _clear(y, frame)


def expand_then_pad(x: Tensor, expand: nn.Conv2d, frame: Frame) -> Tensor:
    """pad(relu6(expand(x)), frame) for a 1×1 ``expand``.

    The few channels before the expansion are padded and not the many after it; what the expansion makes of the
    padding, its bias, is cleared again.
    """
    return _clear(convolve(pad(x, frame), expand, (0, 0), "relu6"), frame)


def _clear(y: Tensor, frame: Frame) -> Tensor:
    """Set the frame of ``y`` to zero, in place."""
    left, right, top, bottom = frame
    height, width = y.shape[2:]
    y[:, :, :top] = 0.0
    y[:, :, height - bottom :] = 0.0
    y[:, :, :, :left] = 0.0
    y[:, :, :, width - right :] = 0.0
    return y
