"""Presets: named sets of run settings. Suites and commands only name them; a preset is part of a run's card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from gcdbench.core.config import Bounds
from gcdbench.core.errors import UnknownName
from gcdbench.training.config import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Settings of a run that are neither the engine's nor the method's.

    weights: a weight file for the backbone, ``"none"`` for random ones (only when asked for), None for the default.
    views: ``"online"`` augments anew in every step; ``"bank:V"`` draws from V stored views an image.
    """

    backbone: str = "efficientnet-lite0"
    weights: str | None = None
    image_size: Annotated[int, Bounds(least=16)] = 128
    views: str = "bank:16"
    augmentation: str = "paper"
    precision: Literal["float32", "bfloat16"] = "float32"


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A named choice of settings; ``views_per_second`` is a rough figure for the expected duration."""

    name: str
    summary: str
    settings: RunSettings
    training: TrainingConfig
    views_per_second: float
    dataset_options: Mapping[str, str] = field(default_factory=dict)


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            name="paper",
            summary="the paper's setting: ResNet-18, 224 px, 200 epochs, fresh augmentation in every step",
            settings=RunSettings(backbone="resnet18", image_size=224, views="online"),
            training=TrainingConfig(epochs=200),
            views_per_second=1500.0,
        ),
        Preset(
            name="laptop",
            summary="minutes on two cores: EfficientNet-Lite0, 128 px, 20 epochs, 16 stored views an image",
            settings=RunSettings(backbone="efficientnet-lite0", image_size=128, views="bank:16"),
            training=TrainingConfig(epochs=20),
            views_per_second=400.0,
        ),
        Preset(
            name="smoke",
            summary="seconds, to see that everything runs: EfficientNet-Lite0, 96 px, 2 epochs, 2 stored views",
            settings=RunSettings(backbone="efficientnet-lite0", image_size=96, views="bank:2"),
            training=TrainingConfig(epochs=2, batch_size=32),
            views_per_second=400.0,
            dataset_options={"n_per_class": "16"},
        ),
    )
}


def get_preset(name: str) -> Preset:
    """The preset called ``name``."""
    if name not in PRESETS:
        raise UnknownName("preset", name, PRESETS)
    return PRESETS[name]


def default_preset(*, has_gpu: bool) -> str:
    """``paper`` on a GPU, ``laptop`` on a CPU."""
    return "paper" if has_gpu else "laptop"
