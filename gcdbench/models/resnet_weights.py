"""Where the ImageNet weights of torchvision's ResNets are. No torch here: a finished run is recognised without it."""

from __future__ import annotations

from pathlib import Path

from gcdbench.models.weights import NO_WEIGHTS, hub_advice, hub_file, locate

HOST = "https://download.pytorch.org/models"
PUBLISHED = {
    "resnet18": (f"{HOST}/resnet18-f37072fd.pth", "f37072fd"),
    "resnet50": (f"{HOST}/resnet50-0676ba61.pth", "0676ba61"),
}
"""Address and first digits of the sha256; for ResNet-50 the first of torchvision's two files, which papers use."""


def locate_resnet(name: str, weights: str | None, *, fetch: bool = True) -> tuple[Path, str]:
    """Path and sha256 of the weight file that is meant by ``weights`` (None: the published one)."""
    published = hub_file(*PUBLISHED[name])
    return locate(published, weights, advice=hub_advice(published), fetch=fetch)


def identify_resnet18(weights: str | None) -> str:
    """sha256 of the weights, or ``"none"`` for random ones."""
    return NO_WEIGHTS if weights == NO_WEIGHTS else locate_resnet("resnet18", weights, fetch=False)[1]


def identify_resnet50(weights: str | None) -> str:
    """sha256 of the weights, or ``"none"`` for random ones."""
    return NO_WEIGHTS if weights == NO_WEIGHTS else locate_resnet("resnet50", weights, fetch=False)[1]
