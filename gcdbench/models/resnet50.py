"""ResNet-50 of torchvision (v1.5: a stage's stride is in its first 3×3 convolution), cut before its last stage."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from gcdbench.models import winograd
from gcdbench.models.backbone import Backbone
from gcdbench.models.freezing import freeze
from gcdbench.models.resnet import load_whole, normalise_cells, resnet_prefix
from gcdbench.models.short_cuts import short_cuts_serve
from gcdbench.models.weights import NO_WEIGHTS


class BottleneckTail(nn.Module):
    """(B, 1024, h, w) to the map X (B, 2048, h/2, w/2): the last stage, torchvision's own modules and names."""

    def __init__(self, layer4: nn.Module) -> None:
        super().__init__()
        self.layer4 = layer4

    def forward(self, x: Tensor) -> Tensor:
        small = x.shape[2] * x.shape[3] <= 4 * winograd.MAX_CELLS
        if short_cuts_serve(x) and small:
            return self.forward_winograd(x)
        return self.forward_plain(x)

    def forward_plain(self, x: Tensor) -> Tensor:
        """As torchvision computes it: for GPUs and large maps."""
        out: Tensor = self.layer4(x)
        return out

    def forward_winograd(self, x: Tensor) -> Tensor:
        """The same up to rounding: a training step of 128 images at 128 px takes 0.8 times as long on a CPU.

        1×1 convolutions, most of the work, are matrix products whichever way they are written, and in torch's
        channels-last kernels they run faster than as explicit products; so only the 3×3 ones are replaced.
        """
        for block in self.layer4.children():
            x = _run_bottleneck(block, x)
        return x


def _run_bottleneck(block: Any, x: Tensor) -> Tensor:
    """torchvision's Bottleneck with its 3×3 convolution and the norm after it on cells: (H·W, C, B)."""
    y = functional.relu(block.bn1(block.conv1(x)))
    height, width = y.shape[2:]
    cells = y.flatten(2).permute(2, 1, 0).contiguous()
    cells = winograd.conv3x3(cells, block.conv2.weight, height, width, block.stride)
    cells = functional.relu(normalise_cells(cells, block.bn2))
    rows = -(-height // block.stride)
    y = cells.view(rows, -1, *cells.shape[1:]).permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    y = block.bn3(block.conv3(y))
    return functional.relu(y + (x if block.downsample is None else block.downsample(x)))


class ResNet50(Backbone):
    """ResNet-50 without its classifier: the prefix ends with layer3 (1024 channels, stride 16), the tail is layer4."""

    name = "resnet50"
    channels = 2048
    stride = 32

    def __init__(self, whole: nn.Module) -> None:
        super().__init__()
        self.weights_sha256 = NO_WEIGHTS
        self.prefix = resnet_prefix(whole)
        self.tail = BottleneckTail(whole.get_submodule("layer4"))


def load_resnet50(weights: str | None = None) -> ResNet50:
    """ResNet-50 with its ImageNet weights, those of the file ``weights``, or random ones (``"none"``)."""
    whole, digest = load_whole("resnet50", weights)
    network = ResNet50(whole)
    network.weights_sha256 = digest
    freeze(network)
    return network
