"""GCD: contrastive features and semi-supervised k-means (Vaze et al., CVPR 2022)."""

from __future__ import annotations

from gcdbench.methods.clustered import ClusteredMethod
from gcdbench.methods.configs import GCDConfig


class GCD(ClusteredMethod):
    """The shared part as it is."""

    config: GCDConfig
