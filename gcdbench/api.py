"""What authors of plugins import. What is not here, in ``gcdbench`` or in ``gcdbench.plugins`` may change at any time.

Importing this module is cheap; torch is imported when the first name that needs it is used.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from gcdbench.core.config import ADDED_LATER, Bounds, Count, NotNegative, Positive, Share
from gcdbench.core.errors import ConfigError, DataError, GCDBenchError, TrainingError, WeightsError
from gcdbench.datasets.card import DatasetCard, load_card
from gcdbench.datasets.source import UNKNOWN, DatasetRequest, DatasetSource, Remark
from gcdbench.images.image_set import ImageSet
from gcdbench.metrics.score import Score, ScoreCatalogue, percent
from gcdbench.splits.data import GCDData
from gcdbench.training.method import Method, Prediction, TaskInfo

if TYPE_CHECKING:
    from gcdbench.methods.configs import SimGCDConfig
    from gcdbench.methods.simgcd import SimGCD
    from gcdbench.metrics.error_terms import HEAD_TERMS as HEAD_ERROR_TERMS
    from gcdbench.metrics.error_terms import TERMS as ERROR_TERMS
    from gcdbench.models import feature_maps
    from gcdbench.models.backbone import IMAGENET_MEAN, IMAGENET_STD, Backbone, TailOutput
    from gcdbench.models.heads import Prototypes
    from gcdbench.models.predict import Model, load_model
    from gcdbench.models.weights import WeightsFile
    from gcdbench.models.weights import load_exactly as load_weights
    from gcdbench.models.weights import locate as locate_weights
    from gcdbench.models.weights import read_state as read_weights
    from gcdbench.reporting.scores import score_catalogue
    from gcdbench.runs.events import EpochEnd, Event, JobEnded, Note, decode_event, encode_event
    from gcdbench.runs.executors.base import EventListener, Executor, Job, JobListener, Outcome
    from gcdbench.runs.executors.job import run_job
    from gcdbench.runs.executors.wire import decode_job, encode_job
    from gcdbench.runs.placement import Placement
    from gcdbench.runs.record import Record, Scores
    from gcdbench.runs.request import Request
    from gcdbench.training import losses
    from gcdbench.training.batch import Batch
    from gcdbench.training.context import RunContext
    from gcdbench.training.parametric import ParametricMethod
    from gcdbench.views.bank import frozen_features

_LAZY = {
    # A method
    "Batch": "gcdbench.training.batch:Batch",
    "ParametricMethod": "gcdbench.training.parametric:ParametricMethod",
    "Prototypes": "gcdbench.models.heads:Prototypes",
    "RunContext": "gcdbench.training.context:RunContext",
    "SimGCD": "gcdbench.methods.simgcd:SimGCD",
    "SimGCDConfig": "gcdbench.methods.configs:SimGCDConfig",
    "frozen_features": "gcdbench.views.bank:frozen_features",
    "feature_maps": "gcdbench.models.feature_maps",
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
    # A saved model
    "Model": "gcdbench.models.predict:Model",
    "load_model": "gcdbench.models.predict:load_model",
    # An executor
    "EventListener": "gcdbench.runs.executors.base:EventListener",
    "Executor": "gcdbench.runs.executors.base:Executor",
    "Job": "gcdbench.runs.executors.base:Job",
    "JobEnded": "gcdbench.runs.events:JobEnded",
    "JobListener": "gcdbench.runs.executors.base:JobListener",
    "Outcome": "gcdbench.runs.executors.base:Outcome",
    "Placement": "gcdbench.runs.placement:Placement",
    "Request": "gcdbench.runs.request:Request",
    # An observer
    "EpochEnd": "gcdbench.runs.events:EpochEnd",
    "Event": "gcdbench.runs.events:Event",
    "Note": "gcdbench.runs.events:Note",
    "Record": "gcdbench.runs.record:Record",
    "Scores": "gcdbench.runs.record:Scores",
    "decode_event": "gcdbench.runs.events:decode_event",
    "decode_job": "gcdbench.runs.executors.wire:decode_job",
    "encode_event": "gcdbench.runs.events:encode_event",
    "encode_job": "gcdbench.runs.executors.wire:encode_job",
    "run_job": "gcdbench.runs.executors.job:run_job",
    # A metric, and whoever shows scores
    "ERROR_TERMS": "gcdbench.metrics.error_terms:TERMS",
    "HEAD_ERROR_TERMS": "gcdbench.metrics.error_terms:HEAD_TERMS",
    "score_catalogue": "gcdbench.reporting.scores:score_catalogue",
}
_RENAMED = {"ImageView": "ImageSet"}
"""Names of interface 1: they work for one release."""

__all__ = [
    "ADDED_LATER",
    "ERROR_TERMS",
    "HEAD_ERROR_TERMS",
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "UNKNOWN",
    "Backbone",
    "Batch",
    "Bounds",
    "ConfigError",
    "Count",
    "DataError",
    "DatasetCard",
    "DatasetRequest",
    "DatasetSource",
    "EpochEnd",
    "Event",
    "EventListener",
    "Executor",
    "GCDBenchError",
    "GCDData",
    "ImageSet",
    "Job",
    "JobEnded",
    "JobListener",
    "Method",
    "Model",
    "NotNegative",
    "Note",
    "Outcome",
    "ParametricMethod",
    "Placement",
    "Positive",
    "Prediction",
    "Prototypes",
    "Record",
    "Remark",
    "Request",
    "RunContext",
    "Score",
    "ScoreCatalogue",
    "Scores",
    "Share",
    "SimGCD",
    "SimGCDConfig",
    "TailOutput",
    "TaskInfo",
    "TrainingError",
    "WeightsError",
    "WeightsFile",
    "decode_event",
    "decode_job",
    "encode_event",
    "encode_job",
    "feature_maps",
    "frozen_features",
    "load_card",
    "load_model",
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
