"""ResNet-18 of torchvision, cut before its last stage."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from gcdbench.backbones.base import Backbone
from gcdbench.backbones.folding import freeze
from gcdbench.backbones.torchvision_shim import import_torchvision
from gcdbench.backbones.weights import NO_WEIGHTS, WeightsFile, load_exactly, locate, read_state

FILE_NAME = "resnet18-f37072fd.pth"
URL = f"https://download.pytorch.org/models/{FILE_NAME}"
PREFIX = ("conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3")

ADVICE = (
    f"Put '{FILE_NAME}' into torch's cache (~/.cache/torch/hub/checkpoints),"
    " or give the file with --set weights=<file>, or run once on a machine that is online, where it is downloaded;"
    " --backbone efficientnet-lite0 works offline, because its weights come with the installation."
)


class ResNet18(Backbone):
    """ResNet-18 without its classifier: the prefix ends with layer3 (256 channels, stride 16), the tail is layer4."""

    name = "resnet18"
    channels = 512
    stride = 32

    def __init__(self, whole: nn.Module) -> None:
        super().__init__()
        self.weights_sha256 = NO_WEIGHTS
        self.prefix = nn.Sequential()
        for part in PREFIX:
            self.prefix.add_module(part, whole.get_submodule(part))
        self.tail = nn.Sequential()
        self.tail.add_module("layer4", whole.get_submodule("layer4"))


def _published() -> WeightsFile:
    cached = Path(torch.hub.get_dir()) / "checkpoints" / FILE_NAME
    return WeightsFile(file_name=FILE_NAME, sha256="f37072fd", places=(cached,), url=URL)


def load_resnet18(weights: str | None = None) -> ResNet18:
    """ResNet-18 with its ImageNet weights, those of the file ``weights``, or random ones (``"none"``)."""
    resnet18 = import_torchvision("torchvision.models").resnet18
    # Random weights must always be the same ones: what is stored from the prefix is keyed by its weights.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        whole = resnet18(weights=None)
    digest = NO_WEIGHTS
    if weights != NO_WEIGHTS:
        path, digest = locate(_published(), weights, advice=ADVICE)
        whole.fc = nn.Identity()
        load_exactly(whole, read_state(path), path, ignore=("fc.",))
    network = ResNet18(whole)
    network.weights_sha256 = digest
    freeze(network)
    return network
