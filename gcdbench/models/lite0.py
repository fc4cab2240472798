"""EfficientNet-Lite networks, cut where their stride becomes 32; and the first of them, Lite0.

Layer sizes follow Google's published configuration; parameter names follow the published PyTorch weight files,
so that they load without renaming. Convolutions pad as TensorFlow's "SAME" does, worked out from the given input,
so any image size is right.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from gcdbench.models import prefix_convolutions as frozen
from gcdbench.models.backbone import Backbone, TailOutput
from gcdbench.models.channel_major import (
    MAX_CELLS,
    from_channel_major,
    normalise,
    pointwise,
    same_padding,
    separable,
    to_channel_major,
)
from gcdbench.models.feature_maps import spatial_mean
from gcdbench.models.freezing import freeze
from gcdbench.models.lite0_weights import locate_lite
from gcdbench.models.lite_layouts import HEAD, LITE0, STEM, Layout
from gcdbench.models.short_cuts import short_cuts_serve
from gcdbench.models.weights import NO_WEIGHTS, load_exactly, read_state

BN_EPS = 1e-3
BN_MOMENTUM = 0.1
"""torch's default. The published training used 0.01 over hundreds of thousands of steps; a run of some hundred
steps needs running statistics that follow the trained stage."""


class SameConv2d(nn.Conv2d):
    """A convolution whose padding is TensorFlow's "SAME" for the given input."""

    def frame(self, x: Tensor) -> frozen.Frame:
        """Zeros that belong around ``x``."""
        return (
            *same_padding(x.shape[3], self.kernel_size[1], self.stride[1]),
            *same_padding(x.shape[2], self.kernel_size[0], self.stride[0]),
        )

    def forward(self, x: Tensor) -> Tensor:
        left, right, top, bottom = frame = self.frame(x)
        if (top, left) == (bottom, right):
            return functional.conv2d(x, self.weight, self.bias, self.stride, (top, left), self.dilation, self.groups)
        x = functional.pad(x, frame)
        return functional.conv2d(x, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)


def _conv(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> SameConv2d:
    return SameConv2d(inputs, outputs, kernel, stride, groups=groups, bias=False)


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=BN_EPS, momentum=BN_MOMENTUM)


def _relu6(x: Tensor) -> Tensor:
    """ReLU6, in place where nothing has to be kept for a backward pass."""
    return functional.relu6(x, inplace=not torch.is_grad_enabled())


class Block(nn.Module):
    """Expand (1×1), filter each channel (k×k), project (1×1); a shortcut where the shape stays the same."""

    def __init__(self, kernel: int, stride: int, expansion: int, inputs: int, outputs: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        self.shortcut = stride == 1 and inputs == outputs
        self.expands = expansion != 1
        self.stride = stride
        if self.expands:
            self._expand_conv = _conv(inputs, hidden, 1)
            self._bn0 = _norm(hidden)
        self._depthwise_conv = _conv(hidden, hidden, kernel, stride, groups=hidden)
        self._bn1 = _norm(hidden)
        self._project_conv = _conv(hidden, outputs, 1)
        self._bn2 = _norm(outputs)

    def forward(self, x: Tensor) -> Tensor:
        y = _relu6(self._bn0(self._expand_conv(x))) if self.expands else x
        y = _relu6(self._bn1(self._depthwise_conv(y)))
        out: Tensor = self._bn2(self._project_conv(y))
        return out + x if self.shortcut else out

    def forward_frozen(self, x: Tensor) -> Tensor:
        """The same with its norms folded into the convolutions and everything else into their passes."""
        left, right, top, bottom = frame = self._depthwise_conv.frame(x)
        padding = (top, left)
        if (top, left) != (bottom, right):
            padding = (0, 0)
            y = frozen.expand_then_pad(x, self._expand_conv, frame) if self.expands else frozen.pad(x, frame)
        else:
            y = frozen.convolve(x, self._expand_conv, (0, 0), "relu6") if self.expands else x
        y = frozen.convolve(y, self._depthwise_conv, padding, "relu6")
        out = frozen.convolve(y, self._project_conv, (0, 0), "none")
        return out.add_(x) if self.shortcut else out

    def forward_channel_major(self, x: Tensor, height: int, width: int) -> Tensor:
        """The same on (C, H·W, B)."""
        y = pointwise(x, self._expand_conv.weight)
        y = separable(y, self._bn0, self._depthwise_conv, self._bn1, height, width)
        y = normalise(pointwise(y, self._project_conv.weight), self._bn2, relu6=False)
        return y + x if self.shortcut else y


def _stack(layout: Layout, numbers: range) -> nn.ModuleDict:
    """Blocks by their number in the whole network, which is also how the weight file names them."""
    return nn.ModuleDict({str(number): Block(*layout.blocks[number]) for number in numbers})


class LitePrefix(nn.Module):
    """Images (B, 3, S, S) to (B, c, S/16, S/16); c is 112 in Lite0."""

    def __init__(self, layout: Layout = LITE0) -> None:
        super().__init__()
        self._conv_stem = _conv(3, STEM, 3, 2)
        self._bn0 = _norm(STEM)
        self._blocks = _stack(layout, range(layout.first_trained))

    def forward(self, x: Tensor) -> Tensor:
        if isinstance(self._bn0, nn.Identity) and frozen.usable(x):
            return self.forward_frozen(x)
        return self.forward_plain(x)

    def forward_plain(self, x: Tensor) -> Tensor:
        """As written in the textbook: for GPUs."""
        x = _relu6(self._bn0(self._conv_stem(x)))
        for block in self._blocks.values():
            x = block(x)
        return x

    def forward_frozen(self, x: Tensor) -> Tensor:
        """The same on a CPU, once BatchNorm is folded."""
        x = frozen.convolve(frozen.pad(x, self._conv_stem.frame(x)), self._conv_stem, (0, 0), "relu6")
        for block in self._blocks.values():
            assert isinstance(block, Block)
            x = block.forward_frozen(x)
        return x


class LiteTail(nn.Module):
    """(B, c, h, w) to the map X (B, 1280, h/2, w/2): the stride-32 stages and the head convolution."""

    def __init__(self, layout: Layout = LITE0) -> None:
        super().__init__()
        self._blocks = _stack(layout, range(layout.first_trained, len(layout.blocks)))
        self._conv_head = _conv(layout.blocks[-1][-1], HEAD, 1)
        self._bn1 = _norm(HEAD)

    def forward(self, x: Tensor) -> Tensor:
        if short_cuts_serve(x) and x.shape[2] * x.shape[3] <= 4 * MAX_CELLS:
            return self.forward_channel_major(x)
        return self.forward_plain(x)

    def forward_plain(self, x: Tensor) -> Tensor:
        """As written in the textbook: for GPUs and large maps."""
        for block in self._blocks.values():
            x = block(x)
        return _relu6(self._bn1(self._conv_head(x)))

    def forward_channel_major(self, x: Tensor) -> Tensor:
        """The same up to rounding, faster on a CPU."""
        height, width = x.shape[2:]
        x = to_channel_major(x)
        for block in self._blocks.values():
            assert isinstance(block, Block)
            x = block.forward_channel_major(x, height, width)
            height, width = -(-height // block.stride), -(-width // block.stride)
        x = normalise(pointwise(x, self._conv_head.weight), self._bn1, relu6=True)
        return from_channel_major(x, height, width)


Lite0Tail = LiteTail


class Lite(Backbone):
    """One of the EfficientNet-Lite networks without its classifier."""

    channels = HEAD
    stride = 32

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.name = layout.name
        self.weights_sha256 = NO_WEIGHTS
        self.prefix = LitePrefix(layout)
        self.tail = LiteTail(layout)

    def run_tail(self, hidden: Tensor) -> TailOutput:
        """From the prefix's output to the map and its spatial mean."""
        feature_map = self.tail(hidden)
        return TailOutput(map=feature_map, pooled=spatial_mean(feature_map))


def _belongs_to_prefix(key: str, layout: Layout) -> bool:
    parts = key.split(".")
    return parts[0] in ("_conv_stem", "_bn0") or (parts[0] == "_blocks" and int(parts[1]) < layout.first_trained)


def load_lite(layout: Layout, weights: str | None) -> Lite:
    """A Lite network with its ImageNet weights, those of the file ``weights``, or random ones (``"none"``)."""
    if weights == NO_WEIGHTS:
        # Random, but always the same: what is stored from the prefix is keyed by its weights.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            network = Lite(layout)
    else:
        network = Lite(layout)
        path, network.weights_sha256 = locate_lite(layout.name, weights)
        state = read_state(path)
        prefix = {key: value for key, value in state.items() if _belongs_to_prefix(key, layout)}
        load_exactly(network.prefix, prefix, path)
        load_exactly(network.tail, {k: v for k, v in state.items() if k not in prefix}, path, ignore=("_fc.",))
    freeze(network)
    return network


def load_lite0(weights: str | None = None) -> Lite:
    """EfficientNet-Lite0."""
    return load_lite(LITE0, weights)
