"""The light half of the public interface: what a plugin module imports to register itself. Imports no torch."""

from gcdbench.metrics.score import Score, percent
from gcdbench.plugins.hookspecs import hookimpl
from gcdbench.plugins.specs import (
    API_VERSION,
    BackboneSpec,
    DatasetSpec,
    ExecutorSpec,
    MethodSpec,
    MetricSpec,
    ObserverSpec,
    PresetSpec,
    Spec,
    SuiteSpec,
)

__all__ = [
    "API_VERSION",
    "BackboneSpec",
    "DatasetSpec",
    "ExecutorSpec",
    "MethodSpec",
    "MetricSpec",
    "ObserverSpec",
    "PresetSpec",
    "Score",
    "Spec",
    "SuiteSpec",
    "hookimpl",
    "percent",
]
