"""What authors of plugins import. What is not here, in ``gcdbench`` or in ``gcdbench.plugins`` may change at any time.

Importing this module is cheap; torch is imported when the first name that needs it is used.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from gcdbench.core.config import Bounds, Count, NotNegative, Positive, Share
from gcdbench.core.errors import ConfigError, DataError, GCDBenchError, TrainingError, WeightsError
from gcdbench.datasets.card import DatasetCard, load_card
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.images.image_set import ImageSet
from gcdbench.metrics.score import Score, ScoreCatalogue, percent
from gcdbench.splits.data import GCDData
from gcdbench.training.method import Method, Prediction, TaskInfo

if TYPE_CHECKING:
    from gcdbench.methods.simgcd import SimGCD, SimGCDConfig
    from gcdbench.models.backbone import IMAGENET_MEAN, IMAGENET_STD, Backbone, TailOutput
    from gcdbench.models.weights import WeightsFile
    from gcdbench.models.weights import load_exactly as load_weights
    from gcdbench.models.weights import locate as locate_weights
    from gcdbench.models.weights import read_state as read_weights
    from gcdbench.reporting.scores import score_catalogue
    from gcdbench.runs.executors.base import EventListener, Executor, Job, JobListener, Outcome
    from gcdbench.runs.executors.job import run_job
    from gcdbench.runs.executors.wire import decode_job, encode_job
    from gcdbench.runs.observers.base import Observer
    from gcdbench.runs.observers.figures import Figures, figures_of_event, figures_of_scores
    from gcdbench.runs.plan import Placement, RunRequest
    from gcdbench.training import losses
    from gcdbench.training.batch import Batch
    from gcdbench.training.context import RunContext
    from gcdbench.training.parametric import ParametricMethod
    from gcdbench.views.bank import frozen_features

_LAZY = {
    # A method
    "Batch": "gcdbench.training.batch:Batch",
    "ParametricMethod": "gcdbench.training.parametric:ParametricMethod",
    "RunContext": "gcdbench.training.context:RunContext",
    "SimGCD": "gcdbench.methods.simgcd:SimGCD",
    "SimGCDConfig": "gcdbench.methods.simgcd:SimGCDConfig",
    "frozen_features": "gcdbench.views.bank:frozen_features",
    "losses": "gcdbench.training.losses",
    # A backbone
    "Backbone": "gcdbench.models.backbone:Backbone",
    "IMAGENET_MEAN": "gcdbench.models.backbone:IMAGENET_MEAN",
    "IMAGENET_STD": "gcdbench.models.backbone:IMAGENET_STD",
    "TailOutput": "gcdbench.models.backbone:TailOutput",
    "WeightsFile": "gcdbench.models.weights:WeightsFile",
    "load_weights": "gcdbench.models.weights:load_exactly",
    "locate_weights": "gcdbench.models.weights:locate",
    "read_weights": "gcdbench.models.weights:read_state",
    # An observer
    "Figures": "gcdbench.runs.observers.figures:Figures",
    "Observer": "gcdbench.runs.observers.base:Observer",
    "figures_of_event": "gcdbench.runs.observers.figures:figures_of_event",
    "figures_of_scores": "gcdbench.runs.observers.figures:figures_of_scores",
    # An executor
    "EventListener": "gcdbench.runs.executors.base:EventListener",
    "Executor": "gcdbench.runs.executors.base:Executor",
    "Job": "gcdbench.runs.executors.base:Job",
    "JobListener": "gcdbench.runs.executors.base:JobListener",
    "Outcome": "gcdbench.runs.executors.base:Outcome",
    "Placement": "gcdbench.runs.plan:Placement",
    "RunRequest": "gcdbench.runs.plan:RunRequest",
    "decode_job": "gcdbench.runs.executors.wire:decode_job",
    "encode_job": "gcdbench.runs.executors.wire:encode_job",
    "run_job": "gcdbench.runs.executors.job:run_job",
    # A metric
    "score_catalogue": "gcdbench.reporting.scores:score_catalogue",
}
_RENAMED = {"ImageView": "ImageSet"}
"""Names of interface 1: they work for one release."""

__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "Backbone",
    "Batch",
    "Bounds",
    "ConfigError",
    "Count",
    "DataError",
    "DatasetCard",
    "DatasetRequest",
    "DatasetSource",
    "EventListener",
    "Executor",
    "Figures",
    "GCDBenchError",
    "GCDData",
    "ImageSet",
    "Job",
    "JobListener",
    "Method",
    "NotNegative",
    "Observer",
    "Outcome",
    "ParametricMethod",
    "Placement",
    "Positive",
    "Prediction",
    "RunContext",
    "RunRequest",
    "Score",
    "ScoreCatalogue",
    "Share",
    "SimGCD",
    "SimGCDConfig",
    "TailOutput",
    "TaskInfo",
    "TrainingError",
    "WeightsError",
    "WeightsFile",
    "decode_job",
    "encode_job",
    "figures_of_event",
    "figures_of_scores",
    "frozen_features",
    "load_card",
    "load_weights",
    "locate_weights",
    "losses",
    "percent",
    "read_weights",
    "run_job",
    "score_catalogue",
]


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        new = _RENAMED[name]
        warnings.warn(
            f"gcdbench.api.{name} is called {new} since plugin interface 2; the old name goes with the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        return globals()[new] if new in globals() else __getattr__(new)
    if name not in _LAZY:
        raise AttributeError(f"module 'gcdbench.api' has no attribute '{name}'")
    module, _, attribute = _LAZY[name].partition(":")
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


def __dir__() -> list[str]:
    return sorted(__all__)
