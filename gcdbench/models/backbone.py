"""A backbone is a frozen prefix and a trained tail; what is between them can be stored and reused."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from gcdbench.models.feature_maps import spatial_mean, tokens

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class TailOutput:
    """Output of the trained tail.

    map: (B, C, H, W), the feature map X; pooled: (B, C), the backbone's own summary
    (the spatial mean for a convolutional network, the class token for a ViT).
    """

    map: Tensor
    pooled: Tensor

    @property
    def tokens(self) -> Tensor:
        """(B, H·W, C): token n is spatial cell n of the map, row by row."""
        return tokens(self.map)


class Backbone(nn.Module):
    """A network cut in two.

    ``prefix`` takes normalised images (B, 3, S, S) and never trains: evaluation mode, no gradient,
    running statistics frozen. ``tail`` takes the prefix's output and returns the map X; its BatchNorm trains.
    ``weights_sha256`` identifies the weights (``"none"`` for random ones), ``stride`` is input pixels per map cell.
    ``pools_map``: whether the pooled feature is the map's spatial mean.
    """

    name: str
    weights_sha256: str
    channels: int
    stride: int
    pools_map: bool = True
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD
    prefix: nn.Module
    tail: nn.Module

    def check_size(self, side: int) -> None:
        """Refuse images of ``side`` pixels with a sentence, where the network does not take them.

        Asked once in a run, before any view is made. Convolutional networks take any size.
        """

    def run_tail(self, hidden: Tensor) -> TailOutput:
        """From the prefix's output (B, c, h, w) to the map and the pooled feature."""
        feature_map = self.tail(hidden)
        return TailOutput(map=feature_map, pooled=spatial_mean(feature_map))

    def train(self, mode: bool = True) -> Backbone:
        """Switch the tail only: the prefix stays in evaluation mode forever."""
        super().train(mode)
        self.prefix.eval()
        return self
