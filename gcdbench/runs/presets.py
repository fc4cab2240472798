"""Presets: settings of a run under one name, as plugins register them (:class:`gcdbench.plugins.specs.PresetSpec`).

A preset's name is on a run's card and not in its identity: two presets with the same values make the same run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Literal

from gcdbench.core.config import Bounds, apply_overrides, field_types
from gcdbench.core.errors import ConfigError, GCDBenchError
from gcdbench.plugins.manager import PluginManager
from gcdbench.plugins.specs import PresetSpec
from gcdbench.training.config import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Settings of a run that are neither the engine's nor the method's.

    weights: a weight file for the backbone, ``"none"`` for random ones (only when asked for), None for the default.
    views: ``"online"`` augments in every step; ``"bank:V"`` draws from V stored views per image, ``"bank8:V"`` from
        views stored in 8 bits, ``"rolling:V"`` replaces one of them in each epoch; ``"auto"`` goes by a disk budget.
    augmentation: which changes a view may have (:data:`gcdbench.views.augmentation.AUGMENTATIONS`).
    """

    backbone: str = "efficientnet-lite0"
    weights: str | None = None
    image_size: Annotated[int, Bounds(least=16)] = 128
    views: str = "bank:16"
    augmentation: str = "paper"
    precision: Literal["float32", "bfloat16"] = "float32"


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A preset with every setting in its place."""

    name: str
    summary: str
    settings: RunSettings
    training: TrainingConfig
    dataset_options: Mapping[str, str] = field(default_factory=dict)


def get_preset(name: str, manager: PluginManager) -> Preset:
    """The preset called ``name``."""
    spec: PresetSpec = manager.get("presets", name)
    try:
        settings, training = _in_place(tuple(sorted(spec.settings.items())))
    except (GCDBenchError, TypeError) as error:
        distribution, _ = manager.provider("presets", name)
        raise ConfigError(f"The preset '{name}' of {distribution} is wrong: {error}") from error
    return Preset(
        name=name,
        summary=spec.summary,
        settings=settings,
        training=training,
        dataset_options=spec.dataset_options,
    )


@lru_cache(maxsize=64)
def _in_place(given: tuple[tuple[str, object], ...]) -> tuple[RunSettings, TrainingConfig]:
    """Settings by their names into the two that a run has; every cell of a table asks for this."""
    of_run = field_types(RunSettings)
    return (
        apply_overrides(RunSettings(), {key: value for key, value in given if key in of_run}),
        apply_overrides(TrainingConfig(), {key: value for key, value in given if key not in of_run}),
    )


def default_preset(*, has_gpu: bool) -> str:
    """``gpu`` on a GPU, ``laptop`` on a CPU."""
    return "gpu" if has_gpu else "laptop"
