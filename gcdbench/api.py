"""The public interface for methods, datasets and metrics. What is not here or in ``gcdbench.plugins`` may change.

Importing this module is cheap; torch is imported when the first name that needs it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gcdbench.core.config import Bounds, Count, NotNegative, Positive, Share
from gcdbench.core.errors import ConfigError, DataError, GCDBenchError, TrainingError
from gcdbench.datasets.card import DatasetCard, load_card
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.images.image_set import ImageSet
from gcdbench.splits.data import GCDData
from gcdbench.training.method import Method, Prediction, TaskInfo

if TYPE_CHECKING:
    from gcdbench.methods.simgcd import SimGCD, SimGCDConfig
    from gcdbench.models import feature_maps
    from gcdbench.models.backbone import Backbone, TailOutput
    from gcdbench.models.predict import Model, load_model
    from gcdbench.training import losses
    from gcdbench.training.batch import Batch
    from gcdbench.training.context import RunContext
    from gcdbench.training.parametric import ParametricMethod
    from gcdbench.views.bank import frozen_features

_LAZY = {
    "Backbone": "gcdbench.models.backbone",
    "TailOutput": "gcdbench.models.backbone",
    "Model": "gcdbench.models.predict",
    "load_model": "gcdbench.models.predict",
    "RunContext": "gcdbench.training.context",
    "frozen_features": "gcdbench.views.bank",
    "SimGCD": "gcdbench.methods.simgcd",
    "SimGCDConfig": "gcdbench.methods.simgcd",
    "Batch": "gcdbench.training.batch",
    "ParametricMethod": "gcdbench.training.parametric",
}

_MODULES = {"feature_maps": "gcdbench.models.feature_maps", "losses": "gcdbench.training.losses"}

__all__ = [
    "Backbone",
    "Batch",
    "Bounds",
    "ConfigError",
    "Count",
    "DataError",
    "DatasetCard",
    "DatasetRequest",
    "DatasetSource",
    "GCDBenchError",
    "GCDData",
    "ImageSet",
    "Method",
    "Model",
    "NotNegative",
    "ParametricMethod",
    "Positive",
    "Prediction",
    "RunContext",
    "Share",
    "SimGCD",
    "SimGCDConfig",
    "TailOutput",
    "TaskInfo",
    "TrainingError",
    "feature_maps",
    "frozen_features",
    "load_card",
    "load_model",
    "losses",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'gcdbench.api' has no attribute '{name}'")
