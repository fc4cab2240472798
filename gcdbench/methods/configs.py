"""Settings of the built-in methods, apart from the methods: to plan a run or to make a table no torch is imported."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Annotated, Literal

from gcdbench.core.config import ADDED_LATER, Bounds, Count, NotNegative, Positive, Share

Algorithm = Literal["infomap", "louvain"]


def default_algorithm() -> Algorithm:
    """``infomap`` where the package is installed; the choice is part of a run's config and so of its identity."""
    return "infomap" if find_spec("infomap") is not None else "louvain"


@dataclass(frozen=True, kw_only=True)
class KMeansConfig:
    """scikit-learn's defaults for the iterations; features have length 1, as in GCD."""

    n_init: Count = 10
    max_iter: Count = 300
    tol: NotNegative = 1e-4
    normalise: bool = True


@dataclass(frozen=True, kw_only=True)
class PixelsKMeansConfig:
    """``side``: images are averaged down to side × side pixels."""

    n_init: Count = 10
    max_iter: Count = 300
    tol: NotNegative = 1e-4
    side: Count = 32


@dataclass(frozen=True, kw_only=True)
class SSKMeansConfig(KMeansConfig):
    """The values of GCD's script (its code's own defaults are 10 starts of 10 iterations)."""

    n_init: Count = 100
    max_iter: Count = 200


@dataclass(frozen=True, kw_only=True)
class ClusteredConfig:
    """Weights and temperatures of GCD's script (its code's defaults weigh both terms equally).

    lambda_: weight of the supervised contrast. projection: width of the projector's output; the published head
    ends in 65,536, a leftover of DINO's that serves nothing here. n_init, max_iter, tol: the final k-means.
    """

    lambda_: Share = 0.35
    tau_u: Positive = 1.0
    tau_c: Positive = 0.07
    projection: Count = 256
    n_init: Count = 100
    max_iter: Count = 200
    tol: NotNegative = 1e-4


@dataclass(frozen=True, kw_only=True)
class GCDConfig(ClusteredConfig):
    """Nothing beyond the shared part."""


@dataclass(frozen=True, kw_only=True)
class DCCLConfig(ClusteredConfig):
    """GCD's terms and the values of DCCL's only published script (CUB).

    neighbours: of the graph, the image itself counted as in the published search; threshold: cosines below it are no
    edges; min_size: smaller communities are not concepts; per_concept: images that the second batch shows of each
    concept; concept_start and concept_end: weight of the concept loss, rising over the first half of the run;
    momentum: what a concept keeps of itself.
    """

    communities: Algorithm = field(default_factory=default_algorithm)
    neighbours: Annotated[int, Bounds(least=2)] = 15
    threshold: Annotated[float, Bounds(least=-1, most=1)] = 0.6
    min_size: Count = 5
    per_concept: Count = 16
    tau_concept: Positive = 0.05
    concept_start: NotNegative = 0.04
    concept_end: NotNegative = 0.4
    momentum: Share = 0.1


@dataclass(frozen=True, kw_only=True)
class CMSConfig:
    """The values of most published scripts, those for fine-grained data; on generic data tau_u is 0.3.

    denominator: "code" leaves the positive out, "paper" has it in. projection: width of the embedding.
    max_shifts: with the unshifted points these are the 20 states of the published loop.
    """

    lambda_: Share = 0.35
    tau_u: Positive = 0.25
    tau_c: Positive = 0.07
    neighbours: Count = 8
    alpha: Share = 0.5
    denominator: Literal["code", "paper"] = "code"
    projection: Count = 512
    patience: Count = 2
    max_shifts: Count = 19


@dataclass(frozen=True, kw_only=True)
class RSPlusConfig:
    """AutoNovel's defaults: weight 50, reached after 150 of 200 epochs; the ramp is a share of the run.

    top_k: size of the compared sets. supervised_outputs: whether labelled images compete among the first K_old
    outputs ("old", the GCD paper's wording) or among all K. tau: temperature of the cosine head.
    """

    top_k: Count = 5
    consistency: NotNegative = 50.0
    ramp: Share = 0.75
    supervised_outputs: Literal["old", "all"] = "old"
    tau: Positive = 0.1


@dataclass(frozen=True, kw_only=True)
class UNOPlusConfig:
    """UNO's values: four heads, ε = 0.05, three iterations, three times as many prototypes where it overclusters.

    balance: unlabelled images spread evenly over "all" prototypes, which asks a head for the share K_old / (K_old + its
    new ones) of them as old (with K_old = K / 2 a half, where it overclusters by 3 a quarter), or over the "new" ones
    only, as UNO does: none of them is taken for old then.
    """

    heads: Count = 4
    overcluster: Count = 3
    epsilon: Positive = 0.05
    iterations: Count = 3
    tau: Positive = 0.1
    balance: Literal["all", "new"] = field(default="all", metadata=ADDED_LATER)


@dataclass(frozen=True, kw_only=True)
class ORCAConfig:
    """The published values; the scale of 10 is 1 / tau.

    fixed_margin: a margin for the whole run instead of the measured one (0.5 was reported to do better).
    """

    tau: Positive = 0.1
    max_margin: NotNegative = 0.5
    fixed_margin: Share | None = None
    pair_weight: NotNegative = 1.0
    entropy_weight: NotNegative = 1.0


@dataclass(frozen=True, kw_only=True)
class SimGCDConfig:
    """The published code's values; fields are what the paper leaves open or what code and paper disagree on.

    lambda_: weight of the supervised half. memax_weight: ε, the code's default; its scripts have 1, 2 or 4.
    entropy: what happens to the entropy of the mean prediction; "maximise" is the equation and the code, "minimise" the
    paper's prose. contrastive: "code" for all 2B rows (InfoNCE) and labelled rows only (SupCon), "paper" for Eqs. 1
    and 2 to the letter.
    """

    lambda_: Share = 0.35
    memax_weight: NotNegative = 2.0
    entropy: Literal["maximise", "minimise"] = "maximise"
    tau_u: Positive = 1.0
    tau_c: Positive = 0.07
    tau_s: Positive = 0.1
    teacher_start: Positive = 0.07
    teacher_end: Positive = 0.04
    teacher_warmup: Share = 0.15
    contrastive: Literal["code", "paper"] = "code"


@dataclass(frozen=True, kw_only=True)
class LegoGCDConfig(SimGCDConfig):
    """SimGCD's fields and LegoGCD's own, with a switch wherever its code and its paper, or its two codes, differ.

    dkl: "code" takes the softmax twice inside the logarithms, "paper" is the divergence itself.
    ler: "single" has the margin and weight 2 of the single-process script, "multi" has neither, as in the
    multi-process script. ler_detach: stop the gradient through the local target (published: no).
    """

    dkl: Literal["code", "paper"] = "code"
    dkl_weight: NotNegative = 1.0
    ler: Literal["single", "multi"] = "single"
    ler_threshold: Share = 0.7
    ler_temperature: Positive = 0.05
    ler_margin: float = 0.4
    ler_detach: bool = False
    prior_momentum: Share = 0.999


@dataclass(frozen=True, kw_only=True)
class NGUFApproxConfig(SimGCDConfig):
    """SimGCD's fields, and constants of our own.

    neighbours: images whose stored predictions correct a pseudo-label; neighbour_weight: the largest share they get;
    distill_weight: weight of agreeing with the prediction stored when the image was last seen.
    """

    neighbours: Count = 8
    neighbour_weight: Share = 0.5
    distill_weight: NotNegative = 0.5


@dataclass(frozen=True, kw_only=True)
class ProtoGCDConfig:
    """The values of the published command for CIFAR-100, of the two that were published the one with fewer classes.

    lambda_: weight of the supervised half. hard_start, hard_end: share of the images that get a hard label, at first
    and after ``hard_ramp`` of the epochs. tau, tau_teacher: temperatures of the prediction and of soft labels.
    """

    lambda_: Share = 0.35
    entropy_weight: NotNegative = 2.0
    separation_weight: NotNegative = 0.1
    tau: Positive = 0.1
    tau_teacher: Positive = 0.05
    hard_start: Share = 0.0
    hard_end: Share = 1.0
    hard_ramp: Share = 0.5
    tau_u: Positive = 1.0
    tau_c: Positive = 0.07
