"""Where the weights of DINO and DINOv2 are, as their authors publish them. No torch here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gcdbench.models.weights import NO_WEIGHTS, hub_advice, hub_file, locate

HOST = "https://dl.fbaipublicfiles.com"


@dataclass(frozen=True, kw_only=True)
class Published:
    """A network: what timm calls one of its shape, and the address of its file, for which no digest is published."""

    architecture: str
    url: str


PUBLISHED = {
    "dino-vits16": Published(
        architecture="vit_small_patch16_224.dino",
        url=f"{HOST}/dino/dino_deitsmall16_pretrain/dino_deitsmall16_pretrain.pth",
    ),
    "dino-vitb16": Published(
        architecture="vit_base_patch16_224.dino",
        url=f"{HOST}/dino/dino_vitbase16_pretrain/dino_vitbase16_pretrain.pth",
    ),
    "dinov2-vits14": Published(
        architecture="vit_small_patch14_dinov2.lvd142m",
        url=f"{HOST}/dinov2/dinov2_vits14/dinov2_vits14_pretrain.pth",
    ),
    "dinov2-vitb14": Published(
        architecture="vit_base_patch14_dinov2.lvd142m",
        url=f"{HOST}/dinov2/dinov2_vitb14/dinov2_vitb14_pretrain.pth",
    ),
}


def locate_dino(name: str, weights: str | None, *, fetch: bool = True) -> tuple[Path, str]:
    """Path and sha256 of the weight file that is meant by ``weights`` (None: the published one)."""
    published = hub_file(PUBLISHED[name].url, "")
    return locate(published, weights, advice=hub_advice(published), fetch=fetch)


def identify_dino(weights: str | None, *, argument: str) -> str:
    """sha256 of the weights of the network ``argument``, or ``"none"`` for random ones."""
    return NO_WEIGHTS if weights == NO_WEIGHTS else locate_dino(argument, weights, fetch=False)[1]


def identify_vit_b16(weights: str | None) -> str:
    """sha256 of the weights of ``vit-b16``, whose published file is DINO's ViT-B/16."""
    return identify_dino(weights, argument="dino-vitb16")
