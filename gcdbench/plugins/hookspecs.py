"""The hooks of gcdbench. Implement any of them in a module named by an entry point of group ``gcdbench``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from gcdbench.plugins.specs import (
        BackboneSpec,
        DatasetSpec,
        ExecutorSpec,
        MethodSpec,
        MetricSpec,
        ObserverSpec,
        PresetSpec,
        SuiteSpec,
    )

PROJECT = "gcdbench"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def gcdbench_methods() -> Iterable[MethodSpec]:  # type: ignore[empty-body]
    """Methods this plugin offers."""


@hookspec
def gcdbench_datasets() -> Iterable[DatasetSpec]:  # type: ignore[empty-body]
    """Datasets this plugin offers."""


@hookspec
def gcdbench_metrics() -> Iterable[MetricSpec]:  # type: ignore[empty-body]
    """Metrics this plugin offers; ``gcdbench rescore`` applies them to runs that exist already."""


@hookspec
def gcdbench_backbones() -> Iterable[BackboneSpec]:  # type: ignore[empty-body]
    """Backbones this plugin offers."""


@hookspec
def gcdbench_executors() -> Iterable[ExecutorSpec]:  # type: ignore[empty-body]
    """Ways of executing planned runs that this plugin offers."""


@hookspec
def gcdbench_observers() -> Iterable[ObserverSpec]:  # type: ignore[empty-body]
    """Observers this plugin offers by name: a run is watched by those that ``--observe`` names."""


@hookspec
def gcdbench_presets() -> Iterable[PresetSpec]:  # type: ignore[empty-body]
    """Presets this plugin offers: settings of a run under one name."""


@hookspec
def gcdbench_suites() -> Iterable[SuiteSpec]:  # type: ignore[empty-body]
    """Suites of a study that this plugin offers: tables and figures, each described by a TOML file."""


@hookspec
def gcdbench_run_started(run: Mapping[str, Any]) -> None:
    """A run has begun; ``run`` is the content of its ``run.json``."""


@hookspec
def gcdbench_run_event(run: Mapping[str, Any], event: Mapping[str, Any]) -> None:
    """A run has written one event (for example the losses of an epoch)."""


@hookspec
def gcdbench_run_finished(run: Mapping[str, Any], scores: Mapping[str, Any]) -> None:
    """A run has ended and was scored."""


@hookspec
def gcdbench_run_failed(run: Mapping[str, Any], error: BaseException) -> None:
    """A run has failed."""
