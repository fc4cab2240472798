"""The public interface for methods, datasets and metrics. What is not here or in ``gcdbench.plugins`` may change.

Importing this module is cheap; torch is imported when the first name that needs it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gcdbench.config import Bounds, Count, NotNegative, Positive, Share
from gcdbench.data.card import DatasetCard, load_card
from gcdbench.data.types import DatasetRequest, DatasetSource, GCDData, ImageView, TaskInfo
from gcdbench.errors import ConfigError, DataError, GCDBenchError, TrainingError
from gcdbench.methods.base import Method, Prediction

if TYPE_CHECKING:
    from gcdbench.backbones.base import Backbone, TailOutput
    from gcdbench.context import RunContext
    from gcdbench.data.bank import frozen_features
    from gcdbench.methods.simgcd import SimGCD, SimGCDConfig
    from gcdbench.training import losses
    from gcdbench.training.batch import Batch
    from gcdbench.training.parametric import ParametricMethod

_LAZY = {
    "Backbone": "gcdbench.backbones.base",
    "TailOutput": "gcdbench.backbones.base",
    "RunContext": "gcdbench.context",
    "frozen_features": "gcdbench.data.bank",
    "SimGCD": "gcdbench.methods.simgcd",
    "SimGCDConfig": "gcdbench.methods.simgcd",
    "Batch": "gcdbench.training.batch",
    "ParametricMethod": "gcdbench.training.parametric",
}

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
    "ImageView",
    "Method",
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
    "frozen_features",
    "load_card",
    "losses",
]


def __getattr__(name: str) -> Any:
    if name == "losses":
        return importlib.import_module("gcdbench.training.losses")
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'gcdbench.api' has no attribute '{name}'")
