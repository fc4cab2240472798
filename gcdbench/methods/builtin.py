"""The methods that come with gcdbench, announced through the same hook as everybody else's."""

from __future__ import annotations

from collections.abc import Iterable

from gcdbench.plugins.hookspecs import hookimpl
from gcdbench.plugins.specs import MethodSpec

CIFAR10 = "cifar10"
"""The variant with a method's published settings for CIFAR-10, or for the smallest set it has a script for.

Every published method has it, even where nothing differs; see docs/methods/README.md for the rule of the defaults.
"""

METHODS = (
    MethodSpec(
        name="pixels-kmeans",
        factory="gcdbench.methods.kmeans:PixelsKMeans",
        config="gcdbench.methods.configs:PixelsKMeansConfig",
        summary="K-means on small copies of the images, without a network",
        citation="Lloyd. Least Squares Quantization in PCM. IEEE Trans. Inf. Theory 1982",
        tags=("clustering", "baseline"),
        needs_backbone=False,
    ),
    MethodSpec(
        name="kmeans",
        factory="gcdbench.methods.kmeans:KMeans",
        config="gcdbench.methods.configs:KMeansConfig",
        summary="K-means on frozen features of the unlabelled images",
        citation="Lloyd. Least Squares Quantization in PCM. IEEE Trans. Inf. Theory 1982",
        tags=("clustering", "baseline"),
    ),
    MethodSpec(
        name="ss-kmeans",
        factory="gcdbench.methods.ss_kmeans:SSKMeans",
        config="gcdbench.methods.configs:SSKMeansConfig",
        summary="GCD's semi-supervised k-means on frozen features",
        citation="Vaze, Han, Vedaldi, Zisserman. Generalized Category Discovery. CVPR 2022",
        tags=("clustering", "baseline"),
        deviations=(
            "An empty cluster moves to the unlabelled image farthest from its centre; published: not a number.",
        ),
        variants={CIFAR10: {}},
    ),
    MethodSpec(
        name="simgcd",
        factory="gcdbench.methods.simgcd:SimGCD",
        config="gcdbench.methods.configs:SimGCDConfig",
        summary="Parametric classifier with self-distillation and mean-entropy regularisation",
        citation="Wen, Zhao, Qi. Parametric Classification for Generalized Category Discovery. ICCV 2023",
        tags=("parametric",),
        trained=True,
        variants={CIFAR10: {"memax_weight": 1.0}, "paper-equations": {"contrastive": "paper"}},
    ),
    MethodSpec(
        name="legogcd",
        factory="gcdbench.methods.legogcd:LegoGCD",
        config="gcdbench.methods.configs:LegoGCDConfig",
        summary="SimGCD with local entropy regularisation and a dual-view divergence",
        citation="Cao et al. Solving the Catastrophic Forgetting Problem in Generalized Category Discovery. CVPR 2024",
        tags=("parametric",),
        trained=True,
        deviations=(
            "One confidence threshold (0.7, the published default) for every dataset; the scripts tune it on each.",
        ),
        variants={
            CIFAR10: {"memax_weight": 1.0, "ler_threshold": 0.95},
            "paper-kl": {"dkl": "paper"},
            "multi-process": {"ler": "multi"},
        },
    ),
    MethodSpec(
        name="protogcd",
        factory="gcdbench.methods.protogcd:ProtoGCD",
        config="gcdbench.methods.configs:ProtoGCDConfig",
        summary="Self-distillation whose labels harden with confidence and time, and prototypes kept apart",
        citation="Ma, Zhu, Zhang, Liu. ProtoGCD: Unified and Unbiased Prototype Learning for Generalized Category "
        "Discovery. IEEE TPAMI 2025",
        tags=("parametric",),
        trained=True,
        deviations=(
            "The last epoch counts; the published code keeps the one with the best accuracy on the unlabelled images.",
            "Hard labels spread over the first half of the epochs, as 100 of 200 published; here a share.",
            "One weight for the separation of prototypes (0.1, CIFAR-100's) for every dataset; published: 0.05 on CUB.",
        ),
        variants={
            "cifar10": {},  # its smallest published set is CIFAR-100, whose values are the defaults
            "cub": {"separation_weight": 0.05},
            "code-defaults": {"separation_weight": 1.0, "hard_start": 0.2},
        },
    ),
    MethodSpec(
        name="gcd",
        factory="gcdbench.methods.gcd:GCD",
        config="gcdbench.methods.configs:GCDConfig",
        summary="Contrastive features, then semi-supervised k-means",
        citation="Vaze, Han, Vedaldi, Zisserman. Generalized Category Discovery. CVPR 2022",
        tags=("clustering",),
        trained=True,
        deviations=(
            "The projector ends in 256 outputs, not 65,536, and is the one shared by all methods.",
            "The last epoch counts; the published code keeps the epoch with the best test accuracy on old classes.",
        ),
        variants={CIFAR10: {}},
    ),
    MethodSpec(
        name="rs-plus",
        factory="gcdbench.methods.rs_plus:RSPlus",
        config="gcdbench.methods.configs:RSPlusConfig",
        summary="Ranking statistics under one K-way head (RankStats+ of the GCD paper)",
        citation="Han et al. Automatically Discovering and Learning New Visual Categories with Ranking Statistics. "
        "ICLR 2020; adapted after Vaze et al. CVPR 2022",
        tags=("parametric",),
        trained=True,
        reconstruction=True,
        deviations=(
            "The adaptation to generalized discovery was never released; this follows the GCD paper's description.",
            "The head is the cosine head of all methods, at temperature 0.1; published: linear with bias.",
            "No rotation pre-training and no supervised stage: every method starts from the same ImageNet weights.",
        ),
        variants={CIFAR10: {"consistency": 5.0, "ramp": 0.25}, "all-outputs": {"supervised_outputs": "all"}},
    ),
    MethodSpec(
        name="uno-plus",
        factory="gcdbench.methods.uno_plus:UNOPlus",
        config="gcdbench.methods.configs:UNOPlusConfig",
        summary="Swapped prediction with several heads and balanced pseudo-labels over all K classes",
        citation="Fini et al. A Unified Objective for Novel Class Discovery. ICCV 2021; adapted after "
        "Vaze et al. CVPR 2022",
        tags=("parametric",),
        trained=True,
        reconstruction=True,
        deviations=(
            "The adaptation to generalized discovery was never released; this follows the GCD paper's description.",
            "Balanced over all K prototypes; published: over the new ones, as no unlabelled image was of an old class.",
            "New-class prototypes see the feature itself, overclustering ones the projection; published: own MLPs.",
            "Two views of one augmentation, no small crops, no supervised stage before: as for every method.",
        ),
        variants={CIFAR10: {"overcluster": 10}, "balance-new": {"balance": "new"}},
    ),
    MethodSpec(
        name="orca",
        factory="gcdbench.methods.orca:ORCA",
        config="gcdbench.methods.configs:ORCAConfig",
        summary="Uncertainty-adaptive margin, pairwise objective and entropy",
        citation="Cao, Brbic, Leskovec. Open-World Semi-Supervised Learning. ICLR 2022",
        tags=("parametric",),
        trained=True,
        deviations=(
            "ImageNet weights instead of SimCLR's, whose recipe was not released: ORCA under our protocol.",
            "Batches are half labelled in expectation, as for every method; published: in proportion.",
        ),
        variants={CIFAR10: {}, "fixed-margin": {"fixed_margin": 0.5}},
    ),
    MethodSpec(
        name="dccl",
        factory="gcdbench.methods.dccl:DCCL",
        config="gcdbench.methods.configs:DCCLConfig",
        summary="Contrast among images and among communities of the feature graph, then semi-supervised k-means",
        citation="Pu, Zhong, Sebe. Dynamic Conceptional Contrastive Learning for Generalized Category Discovery. "
        "CVPR 2023",
        tags=("clustering",),
        version="2",
        trained=True,
        deviations=(
            "Same-class links need a label at both ends; the published code compares the wrong entry.",
            "With fewer concepts than fill a batch, the second batch is smaller; the published code stops.",
            "Without the package 'infomap', communities are Louvain's; the run's config says which.",
            "The last epoch counts; the published code keeps the epoch with the best accuracy on new classes.",
            "One SGD and the shared cosine schedule instead of two optimisers with warm-up.",
        ),
        variants={CIFAR10: {}, "louvain": {"communities": "louvain"}, "infomap": {"communities": "infomap"}},
    ),
    MethodSpec(
        name="cms",
        factory="gcdbench.methods.cms:CMS",
        config="gcdbench.methods.configs:CMSConfig",
        summary="Contrastive mean-shift learning, then iterated shifts and Ward's clusters",
        citation="Choi, Kang, Cho. Contrastive Mean-Shift Learning for Generalized Category Discovery. CVPR 2024",
        tags=("clustering",),
        version="2",
        trained=True,
        deviations=(
            "The embedding is the shared projector's output of 512 values, without a weight-normed last layer.",
            "Nothing is selected on the test part: the last epoch counts, and K is given or estimated from labels.",
            "All points shift at once; published: in place after the first shift, batch after batch.",
            "Images outside the training set join the cluster with the nearest mean.",
        ),
        variants={CIFAR10: {"tau_u": 0.3}, "paper-equations": {"denominator": "paper"}},
    ),
    MethodSpec(
        name="nguf-approx",
        factory="gcdbench.methods.nguf_approx:NGUFApprox",
        config="gcdbench.methods.configs:NGUFApproxConfig",
        summary="A reconstruction from NGUF's abstract: SimGCD with pseudo-labels corrected by neighbours",
        citation="After the abstract of Feng et al. Neighbor-Guided Unbiased Framework for Generalized Category "
        "Discovery in Medical Image Classification. IEEE JBHI 2025",
        tags=("parametric", "reconstruction"),
        trained=True,
        reconstruction=True,
        deviations=("No code and no equations were available: every formula and constant beyond SimGCD is ours.",),
        variants={CIFAR10: {"memax_weight": 1.0}},
    ),
)


@hookimpl
def gcdbench_methods() -> Iterable[MethodSpec]:
    """All built-in methods."""
    return METHODS
