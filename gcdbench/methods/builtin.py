"""The methods that come with gcdbench, announced through the same hook as everybody else's."""

from __future__ import annotations

from collections.abc import Iterable

from gcdbench.plugins.hookspecs import hookimpl
from gcdbench.plugins.specs import MethodSpec

METHODS = (
    MethodSpec(
        name="pixels-kmeans",
        factory="gcdbench.methods.kmeans:PixelsKMeans",
        config="gcdbench.methods.kmeans:PixelsKMeansConfig",
        summary="K-means on small copies of the images, without a network",
        citation="Lloyd. Least Squares Quantization in PCM. IEEE Trans. Inf. Theory 1982",
        tags=("clustering", "baseline"),
        needs_backbone=False,
    ),
    MethodSpec(
        name="kmeans",
        factory="gcdbench.methods.kmeans:KMeans",
        config="gcdbench.methods.kmeans:KMeansConfig",
        summary="K-means on frozen features of the unlabelled images",
        citation="Lloyd. Least Squares Quantization in PCM. IEEE Trans. Inf. Theory 1982",
        tags=("clustering", "baseline"),
    ),
    MethodSpec(
        name="ss-kmeans",
        factory="gcdbench.methods.ss_kmeans:SSKMeans",
        config="gcdbench.methods.ss_kmeans:SSKMeansConfig",
        summary="GCD's semi-supervised k-means on frozen features",
        citation="Vaze, Han, Vedaldi, Zisserman. Generalized Category Discovery. CVPR 2022",
        tags=("clustering", "baseline"),
        deviations=(
            "An empty cluster moves to the unlabelled image farthest from its centre; published: not a number.",
        ),
    ),
    MethodSpec(
        name="simgcd",
        factory="gcdbench.methods.simgcd:SimGCD",
        config="gcdbench.methods.simgcd:SimGCDConfig",
        summary="Parametric classifier with self-distillation and mean-entropy regularisation",
        citation="Wen, Zhao, Qi. Parametric Classification for Generalized Category Discovery. ICCV 2023",
        tags=("parametric",),
        trained=True,
        variants={"paper-equations": {"contrastive": "paper"}},
    ),
    MethodSpec(
        name="legogcd",
        factory="gcdbench.methods.legogcd:LegoGCD",
        config="gcdbench.methods.legogcd:LegoGCDConfig",
        summary="SimGCD with local entropy regularisation and a dual-view divergence",
        citation="Cao et al. Solving the Catastrophic Forgetting Problem in Generalized Category Discovery. CVPR 2024",
        tags=("parametric",),
        trained=True,
        deviations=(
            "One confidence threshold (0.7, the published default) for every dataset; the scripts tune it on each.",
        ),
        variants={"paper-kl": {"dkl": "paper"}, "multi-process": {"ler": "multi"}},
    ),
)


@hookimpl
def gcdbench_methods() -> Iterable[MethodSpec]:
    """All built-in methods."""
    return METHODS
