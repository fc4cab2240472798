"""The methods that come with gcdbench, announced through the same hook as everybody else's."""

from __future__ import annotations

from collections.abc import Iterable

from gcdbench.plugins.hookspecs import hookimpl
from gcdbench.plugins.specs import MethodSpec

METHODS = (
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
