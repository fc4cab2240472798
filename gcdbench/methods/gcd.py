"""GCD: contrastive features and semi-supervised k-means (Vaze et al., CVPR 2022)."""

from __future__ import annotations

from dataclasses import dataclass

from gcdbench.methods.clustered import ClusteredConfig, ClusteredMethod


@dataclass(frozen=True, kw_only=True)
class GCDConfig(ClusteredConfig):
    """Nothing beside the shared part."""


class GCD(ClusteredMethod):
    """The shared part as it is."""

    config: GCDConfig
