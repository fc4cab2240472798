"""The hooks of gcdbench. Implement any of them in a module named by an entry point of group ``gcdbench``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

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
    from gcdbench.runs.events import Event
    from gcdbench.runs.record import Record, Scores

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
def gcdbench_run_started(run: Record) -> None:
    """A run has begun; ``run`` is what is known of it so far."""


@hookspec
def gcdbench_run_event(run: Record, event: Event) -> None:
    """A run has written one event, for example :class:`EpochEnd` with the losses of an epoch."""


@hookspec
def gcdbench_run_finished(run: Record, scores: Scores) -> None:
    """A run has ended and was scored; ``run`` is stored in ``run.path`` with all of its files."""


@hookspec
def gcdbench_run_failed(run: Record, error: BaseException) -> None:
    """A run has failed; ``run.error`` is the reason in a sentence."""
