"""Training a stage of separable convolutions on the CPU, with the batch as the innermost axis.

On small maps torch's convolution backward spends most of a step in depth-wise filters. With activations laid out
as (C, H·W, B) every part of the stage is a dense matrix product on contiguous memory: a 1×1 convolution is
``W (O×C) · X (C×HWB)``, and a depth-wise filter is, channel by channel, a matrix between output and input cells
(on a 4×4 map a 5×5 filter reaches almost every cell anyway). BatchNorm reduces over contiguous rows.
The result equals the plain modules' up to rounding, from the same parameters.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn import functional

from gcdbench.models.products import product
from gcdbench.models.row_norm import normalise_rows

MAX_CELLS = 49
"""Largest input map (h·w, at stride 1) for which filters are matrices; their cost grows with its square.

Lite0's tail, forward and backward on one thread: 1.16 times as fast as the plain modules at 128 px (4 × 4 cells), 1.09
at 192 px, as fast at 224 px (7 × 7), slower beyond."""


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Zeros before and after one axis of length ``size`` so that the output has ceil(size / stride) cells."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


@lru_cache(maxsize=32)
def filter_taps(height: int, width: int, kernel: int, stride: int) -> Tensor:
    """(k·k, oh·ow·h·w) zeros and ones: which tap of a "SAME" filter lies between an output and an input cell."""
    rows = _axis_taps(height, kernel, stride)
    columns = _axis_taps(width, kernel, stride)
    return torch.einsum("uoi,vpj->uvopij", rows, columns).reshape(kernel * kernel, -1).contiguous()


def _axis_taps(size: int, kernel: int, stride: int) -> Tensor:
    """(k, outputs, size): one where input cell = output cell · stride + tap − padding."""
    outputs = torch.arange(-(-size // stride))[None, :, None] * stride
    taps = torch.arange(kernel)[:, None, None]
    cells = torch.arange(size)[None, None, :]
    return (cells == outputs + taps - same_padding(size, kernel, stride)[0]).to(torch.float32)


def to_channel_major(x: Tensor) -> Tensor:
    """(B, C, H, W) to (C, H·W, B), contiguous."""
    return x.flatten(2).permute(1, 2, 0).contiguous()


def from_channel_major(x: Tensor, height: int, width: int) -> Tensor:
    """(C, H·W, B) to a view (B, C, H, W)."""
    return x.view(len(x), height, width, -1).permute(3, 0, 1, 2)


def pointwise(x: Tensor, weight: Tensor) -> Tensor:
    """1×1 convolution: (C, N, B) and weight (O, C, 1, 1) to (O, N, B)."""
    return product(weight.flatten(1), x.flatten(1)).view(-1, *x.shape[1:])


def depthwise(x: Tensor, weight: Tensor, height: int, width: int, stride: int) -> Tensor:
    """Depth-wise "SAME" filter: (C, h·w, B) and weight (C, 1, k, k) to (C, oh·ow, B)."""
    taps = filter_taps(height, width, weight.shape[2], stride).to(weight.dtype)
    matrices = product(weight.flatten(1), taps).view(len(weight), -1, height * width)
    return product(matrices, x)


def separable(
    x: Tensor, before: nn.BatchNorm2d, conv: nn.Conv2d, after: nn.BatchNorm2d, height: int, width: int
) -> Tensor:
    """Norm, ReLU6, depth-wise "SAME" filter, norm, ReLU6: (C, h·w, B) to (C, oh·ow, B)."""
    y = normalise(x, before, relu6=True)
    return normalise(depthwise(y, conv.weight, height, width, conv.stride[0]), after, relu6=True)


def normalise(x: Tensor, norm: nn.BatchNorm2d, *, relu6: bool) -> Tensor:
    """BatchNorm of (C, N, B), in ``norm``'s mode and updating its statistics, then ReLU6 where asked for."""
    if not norm.training:
        y = functional.batch_norm(
            x.view(1, len(x), -1), norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps
        )
        return (functional.relu6(y) if relu6 else y).view(x.shape)
    rows = x.view(len(x), -1)
    y, mean, variance = normalise_rows(rows, norm.weight, norm.bias, eps=norm.eps, relu6=relu6)
    track_statistics(norm, mean, variance, rows.shape[1])
    return y.view(x.shape)


def track_statistics(norm: nn.BatchNorm2d, mean: Tensor, variance: Tensor, count: int) -> None:
    """Running mean and unbiased variance, as torch keeps them; ``variance`` is the biased one of ``count`` numbers."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    assert norm.momentum is not None
    with torch.no_grad():
        norm.num_batches_tracked.add_(1)
        norm.running_mean.lerp_(mean, norm.momentum)
        norm.running_var.lerp_(variance * (count / max(count - 1, 1)), norm.momentum)
