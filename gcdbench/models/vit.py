"""ViT-B/16 with DINO weights, cut before its last block. Needs timm (the extra ``timm``)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gcdbench.core.errors import ConfigError, WeightsError
from gcdbench.models.backbone import Backbone, TailOutput
from gcdbench.models.dino_weights import locate_dino
from gcdbench.models.freezing import freeze_prefix
from gcdbench.models.products import speed_up_linear_layers
from gcdbench.models.torchvision_shim import import_torchvision
from gcdbench.models.weights import NO_WEIGHTS, load_exactly, read_state

SIZE = 224
PATCH = 16
WIDTH = 768


class ViTPrefix(nn.Module):
    """Images (B, 3, 224, 224) to the tokens before the last block as (B, 768, 197, 1): class token, then patches."""

    def __init__(self, whole: Any) -> None:
        super().__init__()
        self.patch_embed = whole.patch_embed
        self.cls_token = whole.cls_token
        self.pos_embed = whole.pos_embed
        self.blocks = nn.ModuleList(whole.blocks[:-1])

    def forward(self, x: Tensor) -> Tensor:
        if tuple(x.shape[2:]) != (SIZE, SIZE):
            raise ConfigError(
                f"vit-b16 takes images of {SIZE} px, not {x.shape[2]}.", hint=f"Use --set image_size={SIZE}."
            )
        tokens = self.patch_embed(x)
        tokens = torch.cat([self.cls_token.expand(len(x), -1, -1), tokens], dim=1) + self.pos_embed
        for block in self.blocks:
            tokens = block(tokens)
        out: Tensor = tokens.transpose(1, 2).unsqueeze(3)
        return out


class ViTTail(nn.Module):
    """The last block and the final norm; (B, 768, 197, 1) in and out."""

    def __init__(self, whole: Any) -> None:
        super().__init__()
        self.block = whole.blocks[-1]
        self.norm = whole.norm

    def forward(self, hidden: Tensor) -> Tensor:
        tokens = self.norm(self.block(hidden.squeeze(3).transpose(1, 2)))
        return tokens.transpose(1, 2).unsqueeze(3)  # type: ignore[no-any-return]


class ViTB16(Backbone):
    """ViT-B/16: the map is the patch tokens (B, 768, 14, 14), the pooled feature is the class token."""

    name = "vit-b16"
    channels = WIDTH
    stride = PATCH
    pools_map = False

    def __init__(self, whole: Any) -> None:
        super().__init__()
        self.weights_sha256 = NO_WEIGHTS
        self.prefix = ViTPrefix(whole)
        self.tail = ViTTail(whole)

    def run_tail(self, hidden: Tensor) -> TailOutput:
        tokens = self.tail(hidden).squeeze(3)
        side = SIZE // PATCH
        return TailOutput(map=tokens[:, :, 1:].unflatten(2, (side, side)), pooled=tokens[:, :, 0])


def load_vit_b16(weights: str | None = None) -> ViTB16:
    """ViT-B/16 with DINO weights, those of the file ``weights``, or random ones (``"none"``)."""
    import_torchvision()  # timm imports torchvision
    try:
        from timm.models.vision_transformer import VisionTransformer
    except ImportError as error:
        raise WeightsError(
            "The backbone vit-b16 needs timm, which is not installed.", hint="pip install 'gcdbench[timm]'"
        ) from error
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        whole = VisionTransformer(
            img_size=SIZE, patch_size=PATCH, embed_dim=WIDTH, depth=12, num_heads=12, num_classes=0
        )
    digest = NO_WEIGHTS
    if weights != NO_WEIGHTS:
        path, digest = locate_dino("dino-vitb16", weights)
        load_exactly(whole, read_state(path), path, ignore=("head.",))
    network = ViTB16(whole)
    network.weights_sha256 = digest
    freeze_prefix(network)
    speed_up_linear_layers(network)
    network.tail.get_submodule("norm").requires_grad_(False)  # the published code trains the block alone
    return network
