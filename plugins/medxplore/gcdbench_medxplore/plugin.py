"""Registers MedXplore with gcdbench. Importing this module is cheap: no torch."""

from __future__ import annotations

from collections.abc import Iterable

from gcdbench.plugins import MethodSpec, PresetSpec, SuiteSpec, hookimpl
from gcdbench_medxplore import study
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
                "Written from the paper's text alone; what it leaves open is listed in benchmarks/medxplore/ledger.md.",
            ),
            variants=VARIANTS,
        )
    ]


@hookimpl
def gcdbench_presets() -> Iterable[PresetSpec]:
    """The paper's own setting."""
    return [study.PAPER]


@hookimpl
def gcdbench_suites() -> Iterable[SuiteSpec]:
    """The tables and figures of the study."""
    return study.suites()
