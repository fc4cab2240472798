"""Make a frozen prefix cheap: BatchNorm folded into the convolution before it, channels-last, no gradient."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from gcdbench.models.allocator import keep_freed_memory
from gcdbench.models.backbone import Backbone


def fold_batchnorm(module: nn.Module) -> int:
    """Fold, in place, every BatchNorm into the convolution registered just before it; returns how many there were.

    Holds for networks whose modules are registered in the order they are used, as ours and torchvision's are.
    """
    folded = 0
    for parent in module.modules():
        for (conv_name, conv), (norm_name, norm) in pairwise(list(parent.named_children())):
            if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                setattr(parent, conv_name, fuse_conv_bn_eval(conv.eval(), norm.eval()))
                setattr(parent, norm_name, nn.Identity())
                folded += 1
    return folded


def freeze(network: Backbone) -> None:
    """Prepare a loaded network: prefix folded and frozen (:func:`freeze_prefix`), both parts channels-last."""
    fold_batchnorm(network.prefix)
    freeze_prefix(network)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def freeze_prefix(network: Backbone) -> None:
    """The prefix in evaluation mode and without gradients; memory that a batch frees is kept for the next one."""
    keep_freed_memory()
    network.prefix.requires_grad_(False).eval()
