"""Settings of MedXplore: one field for each point the paper leaves open (rows of benchmarks/medxplore/ledger.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Literal

from gcdbench.api import ADDED_LATER, Bounds, Count, NotNegative, Positive, Share, SimGCDConfig

FilterName = Literal["spectral-conv", "spectral-gain", "high-pass", "low-pass", "none"]
Padding = Literal["circular", "zeros"]
KernelInit = Literal["delta", "uniform"]
Border = Literal["valid", "replicate", "zeros"]
Signal = Literal["A", "W", "G"]
NegativeMargin = Literal["as-written", "raised"]
Overshoot = Literal["clamp", "wrap"]
View = Literal["first", "second"]


@dataclass(frozen=True, kw_only=True)
class FAACConfig:
    """Frequency-SNR adaptive attention and consistency.

    enabled: without it neither filter nor attention nor patches exist.
    feature: what the losses see in training: the pooled X_out, the backbone's own feature, or both (row 7).
    glec: without it X_out = X_freq, Table 3's row B (row 8).
    filter: as written, or a gain for each frequency, or one of the fixed filters it is compared with (row 25).
    kernel, padding, init: of the spectral convolution (row 6). cutoff: of the fixed filters, in cycles a cell.
    border, ddof: of the local variance and the map's standard deviation (row 9).
    gamma, learn_gamma, eps: of the activation and the patch loss (row 10).
    k, k_scaled: patches chosen; scaled keeps the paper's share of 8 in 49 cells on any map (row 19).
    grid: patches a side where they are coarser than cells (row 5).
    delta, min_matches: of the matching (row 12). weight_gradient: let the pair weights learn (row 11).
    start: share of the run that passes before the patch loss begins.
    token_dim: patches are compared by a linear map of their tokens to this many values, or as they are (row 28).
    stop_gradient: the view whose tokens are constants in the patch similarity (row 29).
    attention_gradient: whether A learns through X_out (the filter, γ and the map behind it), or is a constant (row 30).
    """

    enabled: bool = True
    feature: Literal["x_out", "none", "both"] = "x_out"
    glec: bool = True
    filter: FilterName = "spectral-conv"
    kernel: int = 3
    padding: Padding = "circular"
    init: KernelInit = "delta"
    cutoff: NotNegative = 0.25
    border: Border = "valid"
    ddof: Literal[0, 1] = 0
    gamma: float = 1.0
    learn_gamma: bool = True
    eps: Positive = 1e-6
    k: Count = 8
    k_scaled: bool = False
    grid: int | None = None
    delta: Annotated[float, Bounds(least=-1, most=1)] = 0.65
    min_matches: Count = 1
    weight_gradient: bool = False
    start: Share = 0.0
    token_dim: Count | None = field(default=None, metadata=ADDED_LATER)
    stop_gradient: View | Literal["none"] = field(default="none", metadata=ADDED_LATER)
    attention_gradient: bool = field(default=True, metadata=ADDED_LATER)

    def __post_init__(self) -> None:
        _require(self.kernel >= 1 and self.kernel % 2 == 1, f"faac.kernel must be odd, not {self.kernel}.")
        _require(
            self.glec or self.filter != "high-pass" or self.feature == "none",
            "A high-pass removes the mean of every channel: without GLEC (faac.glec=false) the pooled feature is 0.",
        )


@dataclass(frozen=True, kw_only=True)
class ACAMConfig:
    """Adaptive cosine-angular margin.

    signals: what u_b is made of; none gives a fixed margin (u_b = 1). Without FAAC only G is left (row 16).
    percentile: Π by rank in the batch, or between running percentiles (row 13); momentum, low, high: of the latter.
    match: W_b as the plain or the weighted mean cosine of the matched pairs (row 14).
    views: which views of a labelled image are scored (row 16). detach: no gradient through u_b (row 15).
    direction: margins grow with confidence (the equations) or with ambiguity (the prose, row 22).
    angular_max, cosine_max, scale, gate: M_a, M_c, s and δ′ (row 17).
    overshoot, cos_eps: θ + m beyond π, and the clamp of cosines before the sine (row 18).
    negative_margin: hard negatives are lowered as written, or raised, as a margin would (row 24).
    outputs: the classes that compete: all K, or the old ones, which alone have labels (row 26).
    head: whose prototypes they are: the classifier's own, or others that exist in training only (row 27).
    """

    signals: tuple[Signal, ...] = ("A", "W", "G")
    percentile: Literal["rank", "running"] = "rank"
    momentum: Annotated[float, Bounds(least=0, below=1)] = 0.99
    low: Share = 0.05
    high: Share = 0.95
    match: Literal["mean", "weighted"] = "mean"
    views: Literal["both", "first"] = "both"
    detach: bool = True
    direction: Literal["confident", "ambiguous"] = "confident"
    angular_max: Annotated[float, Bounds(least=0, most=math.pi)] = 0.2
    cosine_max: Share = 0.2
    scale: Positive = 10.0
    gate: Annotated[float, Bounds(least=0, below=1)] = 0.3
    overshoot: Overshoot = "clamp"
    cos_eps: Annotated[float, Bounds(above=0, below=1)] = 1e-6
    negative_margin: NegativeMargin = "as-written"
    outputs: Literal["all", "old"] = field(default="all", metadata=ADDED_LATER)
    head: Literal["shared", "own"] = field(default="shared", metadata=ADDED_LATER)

    def __post_init__(self) -> None:
        _require(self.low < self.high, f"acam.low must be below acam.high, not {self.low} and {self.high}.")
        _require(
            bool(self.signals) or self.direction == "confident",
            "A fixed margin (acam.signals empty) has no direction: leave acam.direction out.",
        )


@dataclass(frozen=True, kw_only=True)
class MedXploreConfig(SimGCDConfig):
    """SimGCD's settings, the weights of the two added losses, and the settings of both modules."""

    alpha: NotNegative = 1.0
    beta: NotNegative = 0.5
    faac: FAACConfig = field(default_factory=FAACConfig)
    acam: ACAMConfig = field(default_factory=ACAMConfig)

    def __post_init__(self) -> None:
        _require(
            self.alpha == 0 or self.has_attention,
            "The patch loss needs FAAC's attention: set alpha=0, or faac.enabled=true and faac.glec=true.",
        )
        _require(
            self.beta == 0 or not self.acam.signals or bool(self.signals),
            "u_b is to be made of A or W alone, which need FAAC: add G to acam.signals, or enable FAAC.",
        )

    @property
    def has_attention(self) -> bool:
        """Whether the map A exists."""
        return self.faac.enabled and self.faac.glec

    @property
    def signals(self) -> tuple[Signal, ...]:
        """The confidence signals that exist under these settings."""
        return tuple(name for name in self.acam.signals if name == "G" or self.has_attention)

    @property
    def needs_anchors(self) -> bool:
        """Whether patches are chosen and matched at all."""
        return self.alpha > 0 or (self.beta > 0 and bool({"A", "W"} & set(self.signals)))

    @property
    def needs_faac(self) -> bool:
        """Whether FAAC's modules have any effect; where not, they are not even built."""
        return self.needs_anchors or (self.faac.enabled and self.faac.feature != "none")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)
