"""Make a frozen prefix cheap: BatchNorm folded into the convolution before it, weights channels-last, no gradient."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from gcdbench.backbones.base import Backbone


def fold_batchnorm(module: nn.Module, pairs: list[tuple[str, str]]) -> None:
    """Fold, in place, each BatchNorm child into the convolution child named beside it (evaluation mode)."""
    for conv_name, norm_name in pairs:
        conv, norm = module.get_submodule(conv_name), module.get_submodule(norm_name)
        assert isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d)
        fused = fuse_conv_bn_eval(conv.eval(), norm.eval())
        module.set_submodule(conv_name, fused)
        module.set_submodule(norm_name, nn.Identity())


def freeze(network: Backbone) -> None:
    """Put the prefix into evaluation mode without gradients; both parts channels-last."""
    network.prefix.requires_grad_(False).eval()
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
