"""Registers MedXplore with gcdbench. Importing this module is cheap: no torch."""

from __future__ import annotations

from collections.abc import Iterable

from gcdbench.plugins import MethodSpec, hookimpl
from gcdbench_medxplore.variants import VARIANTS


@hookimpl
def gcdbench_methods() -> Iterable[MethodSpec]:
    """MedXplore and its named variants."""
    return [
        MethodSpec(
            name="medxplore",
            api=2,
            factory="gcdbench_medxplore.method:MedXplore",
            config="gcdbench_medxplore.config:MedXploreConfig",
            summary="SimGCD with frequency-guided patch consistency (FAAC) and adaptive margins (ACAM)",
            citation="He, Lyu, Dong, Xiao, Hou, Lu, Wu, Shu, Hao. MedXplore: Towards Reliable and Unbiased "
            "Generalized Category Discovery in Medical Imaging",
            tags=("parametric", "medical"),
            trained=True,
            reconstruction=True,
            deviations=(
                "Written from the paper's text alone; 25 points it leaves open are listed in docs/fidelity.md.",
            ),
            variants=VARIANTS,
        )
    ]
