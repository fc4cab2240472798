"""A backbone from any of timm's networks that ends in a map or in tokens: cut before its last stage or block."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from gcdbench.core.errors import ConfigError
from gcdbench.models.backbone import Backbone, TailOutput
from gcdbench.models.cutting import Call, last_stage, learns
from gcdbench.models.freezing import freeze_prefix
from gcdbench.models.halves import CannotBeCutError, FirstHalf, SecondHalf
from gcdbench.models.products import speed_up_linear_layers
from gcdbench.models.weights import NO_WEIGHTS

RUN = "forward_features"
"""timm's name for everything before pooling and classifier."""

UNFIT = (AssertionError, RuntimeError, ValueError)
"""What networks raise when they are given images of a size that they were not made for."""

PROBE_SIDE = 8
"""Patches on a side of the image with which a transformer is looked at."""


class TimmPrefix(nn.Module):
    """The first half, with its output as (B, c, h, w); images of a size that it does not take are refused.

    native: the side its weights were made for; fixed: whether it takes no other; patch: what a side must be a multiple
    of, where it takes others.
    """

    def __init__(self, part: FirstHalf, *, name: str, native: int, fixed: bool, patch: int | None) -> None:
        super().__init__()
        self.part = part
        self.name = name
        self.native = native
        self.fixed = fixed
        self.patch = patch

    def forward(self, images: Tensor) -> Tensor:
        native = images.shape[2] == images.shape[3] == self.native
        if self.fixed and not native:
            raise self.refusal(images.shape[2])
        try:
            hidden: Tensor = self.part(images)
        except UNFIT as error:
            if native:
                raise
            raise self.refusal(images.shape[2]) from error
        return hidden.transpose(1, 2).unsqueeze(3) if hidden.ndim == 3 else hidden

    def refusal(self, side: int) -> ConfigError:
        """The sentence about images of a side that the network does not take."""
        made_for = f"--set image_size={self.native}"
        if self.fixed or self.patch is None or side % self.patch == 0:
            return ConfigError(
                f"{self.name} takes images of {self.native} px, not of {side} px.",
                hint=f"Its weights were made for {made_for}.",
            )
        nearest = max(1, round(side / self.patch)) * self.patch
        return ConfigError(
            f"{self.name} takes images whose side is a multiple of {self.patch} px, not of {side} px.",
            hint=f"The nearest is --set image_size={nearest}; its weights were made for {made_for}.",
        )


class TimmTail(nn.Module):
    """The second half, and the norm that some transformers put after the mean of their tokens."""

    def __init__(self, chain: list[Call], after_pooling: nn.Module, *, tokens_in: bool) -> None:
        super().__init__()
        self.part = SecondHalf(chain)
        self.after_pooling = after_pooling
        self.tokens_in = tokens_in

    def forward(self, hidden: Tensor) -> Tensor:
        out: Tensor = self.part(hidden.squeeze(3).transpose(1, 2) if self.tokens_in else hidden)
        return out


class TimmBackbone(Backbone):
    """A network of timm's.

    A map is pooled by its mean. Tokens are summarised by the class token where the network does so itself, else by the
    mean of the others; ``special`` tokens stand before those that belong to cells of the image.
    """

    def __init__(self, name: str, whole: Any) -> None:
        super().__init__()
        self.name = name
        self.weights_sha256 = NO_WEIGHTS
        settings = whole.pretrained_cfg
        self.mean, self.std = tuple(settings["mean"]), tuple(settings["std"])
        self.channels = int(whole.num_features)
        native = int(settings["input_size"][-1])
        patch = _patch(whole)
        # A transformer that takes any size is looked at on few tokens; others are what they are at their own size.
        probe = native if patch is None else min(native, PROBE_SIDE * patch)
        run = getattr(whole, RUN)
        out, chain = last_stage(whole, run, torch.zeros(1, 3, probe, probe))
        if any(call.bound_to_size for call in chain) and probe != native:
            probe = native
            out, chain = last_stage(whole, run, torch.zeros(1, 3, probe, probe))
        self.channels_last = _channels_last(out, self.channels)
        self.special = _special_tokens(whole, out)
        if not learns(chain):
            raise CannotBeCutError("has no last stage or block that can be separated from the rest")
        token = self.special > 0 and whole.global_pool == "token"
        after_pooling = getattr(whole, "fc_norm", None) if out.ndim == 3 and not token else None
        self.summary = "token" if token else "mean"
        self.prefix = TimmPrefix(
            FirstHalf(whole, RUN, chain),
            name=name,
            native=native,
            fixed=any(call.bound_to_size for call in chain),
            patch=patch,
        )
        self.tail = TimmTail(chain, after_pooling or nn.Identity(), tokens_in=chain[0].given.ndim == 3)
        self.pools_map = not token and isinstance(self.tail.after_pooling, nn.Identity)
        self.stride = _stride(whole, probe, self._map(out).shape[2])
        self._compare(whole, probe)

    def check_size(self, side: int) -> None:
        """Refuse a side that either half does not take: an empty image goes through both of them."""
        assert isinstance(self.prefix, TimmPrefix)
        parameter = next(self.parameters())
        training = self.tail.training
        self.tail.eval()
        try:
            with torch.no_grad():
                self.run_tail(self.prefix(torch.zeros(1, 3, side, side, device=parameter.device)))
        except UNFIT as error:
            if side == self.prefix.native:
                raise
            raise self.prefix.refusal(side) from error
        finally:
            self.tail.train(training)

    def run_tail(self, hidden: Tensor) -> TailOutput:
        """From the prefix's output to the map and the network's summary of it."""
        out = self.tail(hidden)
        feature_map = self._map(out)
        pooled = out[:, 0] if self.summary == "token" else feature_map.mean(dim=(2, 3))
        assert isinstance(self.tail, TimmTail)
        return TailOutput(map=feature_map, pooled=self.tail.after_pooling(pooled))

    def _map(self, out: Tensor) -> Tensor:
        """(B, C, H, W) from what the network gives: that, (B, H, W, C), or tokens (B, N, C) row by row."""
        if out.ndim == 4:
            return out.permute(0, 3, 1, 2) if self.channels_last else out
        tokens = out[:, self.special :].transpose(1, 2)
        side = math.isqrt(tokens.shape[2])
        return tokens.unflatten(2, (side, -1))  # type: ignore[no-untyped-call, no-any-return]

    def _compare(self, whole: Any, size: int) -> None:
        """Both halves must give what the whole gives, and its cells must be where timm says they do."""
        image = torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            theirs = getattr(whole, RUN)(image)
            hidden = self.prefix(image)
            feature_map = self.run_tail(hidden).map
            if not _close(self.tail(hidden), theirs):
                raise CannotBeCutError("gives its last stage more than the output of the one before")
            expected = _timms_map(whole, image)
            if expected is not None and expected.shape == feature_map.shape and not _close(feature_map, expected):
                raise CannotBeCutError("has tokens in another order than row by row")


def _patch(whole: Any) -> int | None:
    """Pixels to a token of a transformer that takes images of any number of them.

    Where convolutions stand before the patches, these are patches of their map: of one cell, as a rule.
    """
    if not getattr(whole, "dynamic_img_size", False) or not hasattr(whole, "patch_embed"):
        return None
    embed = whole.patch_embed
    return int(embed.feat_ratio(as_scalar=True) if hasattr(embed, "feat_ratio") else embed.patch_size[0])


def _stride(whole: Any, size: int, side: int) -> int:
    """Pixels of the image to a cell of the map: what timm says, where the map itself agrees."""
    stages = getattr(whole, "feature_info", None)
    said = int(stages[-1]["reduction"]) if isinstance(stages, list) and stages else 0
    return said if said and math.ceil(size / said) == side else math.ceil(size / side)


def _close(ours: Tensor, theirs: Tensor) -> bool:
    return torch.allclose(ours, theirs, rtol=1e-3, atol=1e-4 * float(theirs.abs().max()))


def _timms_map(whole: Any, image: Tensor) -> Tensor | None:
    """The last map as timm itself lays it out, where it does."""
    if not hasattr(whole, "forward_intermediates"):
        return None
    try:
        maps = whole.forward_intermediates(image, indices=1, norm=True, output_fmt="NCHW", intermediates_only=True)
    except (AssertionError, TypeError):  # without a final norm, or without this layout
        return None
    last: Tensor = maps[-1]
    return last


def _channels_last(out: Any, channels: int) -> bool:
    if not isinstance(out, Tensor) or out.ndim not in (3, 4) or channels not in (out.shape[1], out.shape[-1]):
        raise CannotBeCutError("ends in neither a feature map nor tokens")
    return out.ndim == 4 and (out.shape[1] == out.shape[2] and out.shape[3] == channels)


def _special_tokens(whole: Any, out: Tensor) -> int:
    """How many tokens belong to no cell of the image."""
    if out.ndim == 4:
        return 0
    count = out.shape[1]
    special = getattr(whole, "num_prefix_tokens", count - math.isqrt(count) ** 2)
    if count - special < 4 or math.isqrt(count - special) ** 2 != count - special:
        raise CannotBeCutError("ends in tokens that are not a square grid")
    return int(special)


def assemble(name: str, whole: Any, digest: str) -> TimmBackbone:
    """A backbone from one of timm's networks with its weights in it; what cannot be cut is refused in a sentence."""
    try:
        network = TimmBackbone(name, whole.eval())
    except CannotBeCutError as error:
        raise ConfigError(
            f"{name} cannot be a backbone: it {error}.", hint="Choose another: 'gcdbench list backbones' names some."
        ) from error
    network.weights_sha256 = digest
    freeze_prefix(network)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    speed_up_linear_layers(network)
    return network
