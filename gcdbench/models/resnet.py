"""ResNet-18 of torchvision, cut before its last stage."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from gcdbench.models import winograd
from gcdbench.models.backbone import Backbone, TailOutput
from gcdbench.models.feature_maps import spatial_mean
from gcdbench.models.freezing import freeze
from gcdbench.models.products import product
from gcdbench.models.resnet_weights import locate_resnet
from gcdbench.models.short_cuts import short_cuts_serve
from gcdbench.models.torchvision_shim import import_torchvision
from gcdbench.models.weights import NO_WEIGHTS, load_exactly, read_state

PREFIX = ("conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3")


class ResNetTail(nn.Module):
    """(B, 256, h, w) to the map X (B, 512, h/2, w/2): the last stage, torchvision's own modules and names."""

    def __init__(self, layer4: nn.Module) -> None:
        super().__init__()
        self.layer4 = layer4

    def forward(self, x: Tensor) -> Tensor:
        if short_cuts_serve(x) and x.shape[2] * x.shape[3] <= 4 * winograd.MAX_CELLS:
            return self.forward_cell_major(x)
        return self.forward_plain(x)

    def forward_plain(self, x: Tensor) -> Tensor:
        """As torchvision computes it: for GPUs and large maps."""
        out: Tensor = self.layer4(x)
        return out

    def forward_cell_major(self, x: Tensor) -> Tensor:
        """The same up to rounding, about three times as fast on a CPU: (H·W, C, B) and Winograd's convolutions."""
        height, width = x.shape[2:]
        x = x.flatten(2).permute(2, 1, 0).contiguous()
        for block in self.layer4.children():
            x, height, width = _run_block(block, x, height, width)
        return x.view(height, width, *x.shape[1:]).permute(3, 2, 0, 1)


def _run_block(block: Any, x: Tensor, height: int, width: int) -> tuple[Tensor, int, int]:
    """torchvision's BasicBlock on (H·W, C, B); also the size of the map it leaves."""
    stride = block.stride
    y = functional.relu(normalise_cells(winograd.conv3x3(x, block.conv1.weight, height, width, stride), block.bn1))
    if block.downsample is not None:
        conv, norm = block.downsample
        chosen = x.view(height, width, *x.shape[1:])[::stride, ::stride].flatten(0, 1)
        x = normalise_cells(product(conv.weight.flatten(1).expand(len(chosen), -1, -1), chosen), norm)
    height, width = -(-height // stride), -(-width // stride)
    y = normalise_cells(winograd.conv3x3(y, block.conv2.weight, height, width), block.bn2)
    return functional.relu(y + x), height, width


def normalise_cells(x: Tensor, norm: Any) -> Tensor:
    """BatchNorm of (N, C, B) in ``norm``'s mode, updating its statistics."""
    if norm.training:
        norm.num_batches_tracked.add_(1)
    return functional.batch_norm(
        x, norm.running_mean, norm.running_var, norm.weight, norm.bias, norm.training, norm.momentum, norm.eps
    )


class ResNet18(Backbone):
    """ResNet-18 without its classifier: the prefix ends with layer3 (256 channels, stride 16), the tail is layer4."""

    name = "resnet18"
    channels = 512
    stride = 32

    def __init__(self, whole: nn.Module) -> None:
        super().__init__()
        self.weights_sha256 = NO_WEIGHTS
        self.prefix = resnet_prefix(whole)
        self.tail = ResNetTail(whole.get_submodule("layer4"))

    def run_tail(self, hidden: Tensor) -> TailOutput:
        """From the prefix's output to the map and its spatial mean."""
        feature_map = self.tail(hidden)
        return TailOutput(map=feature_map, pooled=spatial_mean(feature_map))


def resnet_prefix(whole: nn.Module) -> nn.Sequential:
    """Everything up to layer3 of one of torchvision's ResNets, under its own names."""
    prefix = nn.Sequential()
    for part in PREFIX:
        prefix.add_module(part, whole.get_submodule(part))
    return prefix


def load_whole(name: str, weights: str | None) -> tuple[nn.Module, str]:
    """torchvision's network of that name and the sha256 of its weights.

    ``weights``: None for the published ones, a file, or ``"none"`` for random ones.
    """
    # Random weights must always be the same ones: what is stored from the prefix is keyed by its weights.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        whole: nn.Module = getattr(import_torchvision("torchvision.models"), name)(weights=None)
    if weights == NO_WEIGHTS:
        return whole, NO_WEIGHTS
    path, digest = locate_resnet(name, weights)
    whole.fc = nn.Identity()
    load_exactly(whole, read_state(path), path, ignore=("fc.",))
    return whole, digest


def load_resnet18(weights: str | None = None) -> ResNet18:
    """ResNet-18 with its ImageNet weights, those of the file ``weights``, or random ones (``"none"``)."""
    whole, digest = load_whole("resnet18", weights)
    network = ResNet18(whole)
    network.weights_sha256 = digest
    freeze(network)
    return network
