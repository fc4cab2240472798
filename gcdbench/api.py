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
    from gcdbench.core.config import apply_overrides, flatten
    from gcdbench.datasets.protocols import card_of, default_protocol
    from gcdbench.methods.configs import SimGCDConfig
    from gcdbench.methods.simgcd import SimGCD
    from gcdbench.metrics.error_terms import BY_MAP
    from gcdbench.metrics.error_terms import HEAD_TERMS as HEAD_ERROR_TERMS
    from gcdbench.metrics.error_terms import TERMS as ERROR_TERMS
    from gcdbench.models import feature_maps
    from gcdbench.models.backbone import IMAGENET_MEAN, IMAGENET_STD, Backbone, TailOutput
    from gcdbench.models.heads import Prototypes
    from gcdbench.models.predict import Model, load_model
    from gcdbench.models.weight_notes import note_on_weights
    from gcdbench.models.weights import WeightsFile
    from gcdbench.models.weights import load_exactly as load_weights
    from gcdbench.models.weights import locate as locate_weights
    from gcdbench.models.weights import read_state as read_weights
    from gcdbench.plugins.manager import get_manager
    from gcdbench.reporting.explain.images import Images, open_images
    from gcdbench.reporting.explain.restore import Trained, restore
    from gcdbench.reporting.published.reported import read_reported
    from gcdbench.reporting.records import CellRecord, cell_records
    from gcdbench.reporting.scores import score_catalogue
    from gcdbench.reporting.statistics import (
        PairedDifference,
        holm,
        median_interval,
        paired_difference,
        share_interval,
        sign_flip_test,
        sign_test,
    )
    from gcdbench.reporting.suites.finding import FROM_DATA
    from gcdbench.reporting.suites.read import load_suite
    from gcdbench.reporting.suites.seeds import parse_seeds
    from gcdbench.reporting.tables.bootstrap import RunBootstrap
    from gcdbench.reporting.tables.grid import mean_text
    from gcdbench.reporting.tables.model import ResultTable
    from gcdbench.reporting.tables.render import render
    from gcdbench.reporting.tables.suite_cells import runs_of_suite
    from gcdbench.reporting.tables.suite_table import suite_table
    from gcdbench.runs.directory import RunDirectory
    from gcdbench.runs.events import EpochEnd, Event, JobEnded, Note, decode_event, encode_event
    from gcdbench.runs.execution import Execution, make_context, prepare_data, task_info
    from gcdbench.runs.executors.base import EventListener, Executor, Job, JobListener, Outcome
    from gcdbench.runs.executors.job import run_job
    from gcdbench.runs.executors.wire import decode_job, encode_job
    from gcdbench.runs.index import find_run, load_runs
    from gcdbench.runs.observers.base import Observer
    from gcdbench.runs.observers.figures import Figures, figures_of_event, figures_of_scores
    from gcdbench.runs.placement import Placement
    from gcdbench.runs.plan import Materials, make_plan
    from gcdbench.runs.predictions import load_predictions
    from gcdbench.runs.reader import read_record
    from gcdbench.runs.record import DONE, TRANSDUCTIVE, Record, Scores
    from gcdbench.runs.request import Request
    from gcdbench.training import losses
    from gcdbench.training.batch import Batch
    from gcdbench.training.context import RunContext
    from gcdbench.training.optimiser import make_optimiser
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
    # An observer
    "Figures": "gcdbench.runs.observers.figures:Figures",
    "Observer": "gcdbench.runs.observers.base:Observer",
    "figures_of_event": "gcdbench.runs.observers.figures:figures_of_event",
    "figures_of_scores": "gcdbench.runs.observers.figures:figures_of_scores",
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
    # A study: runs, suites and tables, and what trains or loads a model
    "BY_MAP": "gcdbench.metrics.error_terms:BY_MAP",
    "CellRecord": "gcdbench.reporting.records:CellRecord",
    "DONE": "gcdbench.runs.record:DONE",
    "Execution": "gcdbench.runs.execution:Execution",
    "FROM_DATA": "gcdbench.reporting.suites.finding:FROM_DATA",
    "Images": "gcdbench.reporting.explain.images:Images",
    "Materials": "gcdbench.runs.plan:Materials",
    "PairedDifference": "gcdbench.reporting.statistics:PairedDifference",
    "ResultTable": "gcdbench.reporting.tables.model:ResultTable",
    "RunBootstrap": "gcdbench.reporting.tables.bootstrap:RunBootstrap",
    "RunDirectory": "gcdbench.runs.directory:RunDirectory",
    "TRANSDUCTIVE": "gcdbench.runs.record:TRANSDUCTIVE",
    "Trained": "gcdbench.reporting.explain.restore:Trained",
    "apply_overrides": "gcdbench.core.config:apply_overrides",
    "card_of": "gcdbench.datasets.protocols:card_of",
    "cell_records": "gcdbench.reporting.records:cell_records",
    "default_protocol": "gcdbench.datasets.protocols:default_protocol",
    "find_run": "gcdbench.runs.index:find_run",
    "flatten": "gcdbench.core.config:flatten",
    "get_manager": "gcdbench.plugins.manager:get_manager",
    "load_predictions": "gcdbench.runs.predictions:load_predictions",
    "load_runs": "gcdbench.runs.index:load_runs",
    "load_suite": "gcdbench.reporting.suites.read:load_suite",
    "make_context": "gcdbench.runs.execution:make_context",
    "make_optimiser": "gcdbench.training.optimiser:make_optimiser",
    "make_plan": "gcdbench.runs.plan:make_plan",
    "mean_text": "gcdbench.reporting.tables.grid:mean_text",
    "open_images": "gcdbench.reporting.explain.images:open_images",
    "holm": "gcdbench.reporting.statistics:holm",
    "median_interval": "gcdbench.reporting.statistics:median_interval",
    "paired_difference": "gcdbench.reporting.statistics:paired_difference",
    "share_interval": "gcdbench.reporting.statistics:share_interval",
    "sign_flip_test": "gcdbench.reporting.statistics:sign_flip_test",
    "sign_test": "gcdbench.reporting.statistics:sign_test",
    "note_on_weights": "gcdbench.models.weight_notes:note_on_weights",
    "parse_seeds": "gcdbench.reporting.suites.seeds:parse_seeds",
    "prepare_data": "gcdbench.runs.execution:prepare_data",
    "read_record": "gcdbench.runs.reader:read_record",
    "read_reported": "gcdbench.reporting.published.reported:read_reported",
    "render": "gcdbench.reporting.tables.render:render",
    "restore": "gcdbench.reporting.explain.restore:restore",
    "runs_of_suite": "gcdbench.reporting.tables.suite_cells:runs_of_suite",
    "suite_table": "gcdbench.reporting.tables.suite_table:suite_table",
    "task_info": "gcdbench.runs.execution:task_info",
}
_RENAMED = {"ImageView": "ImageSet"}
"""Names of interface 1: they work for one release."""

__all__ = [
    "ADDED_LATER",
    "BY_MAP",
    "DONE",
    "ERROR_TERMS",
    "FROM_DATA",
    "HEAD_ERROR_TERMS",
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "TRANSDUCTIVE",
    "UNKNOWN",
    "Backbone",
    "Batch",
    "Bounds",
    "CellRecord",
    "ConfigError",
    "Count",
    "DataError",
    "DatasetCard",
    "DatasetRequest",
    "DatasetSource",
    "EpochEnd",
    "Event",
    "EventListener",
    "Execution",
    "Executor",
    "Figures",
    "GCDBenchError",
    "GCDData",
    "ImageSet",
    "Images",
    "Job",
    "JobEnded",
    "JobListener",
    "Materials",
    "Method",
    "Model",
    "NotNegative",
    "Note",
    "Observer",
    "Outcome",
    "PairedDifference",
    "ParametricMethod",
    "Placement",
    "Positive",
    "Prediction",
    "Prototypes",
    "Record",
    "Remark",
    "Request",
    "ResultTable",
    "RunBootstrap",
    "RunContext",
    "RunDirectory",
    "Score",
    "ScoreCatalogue",
    "Scores",
    "Share",
    "SimGCD",
    "SimGCDConfig",
    "TailOutput",
    "TaskInfo",
    "Trained",
    "TrainingError",
    "WeightsError",
    "WeightsFile",
    "apply_overrides",
    "card_of",
    "cell_records",
    "decode_event",
    "decode_job",
    "default_protocol",
    "encode_event",
    "encode_job",
    "feature_maps",
    "figures_of_event",
    "figures_of_scores",
    "find_run",
    "flatten",
    "frozen_features",
    "get_manager",
    "holm",
    "load_card",
    "load_model",
    "load_predictions",
    "load_runs",
    "load_suite",
    "load_weights",
    "locate_weights",
    "losses",
    "make_context",
    "make_optimiser",
    "make_plan",
    "mean_text",
    "median_interval",
    "note_on_weights",
    "open_images",
    "paired_difference",
    "parse_seeds",
    "percent",
    "prepare_data",
    "read_record",
    "read_reported",
    "read_weights",
    "render",
    "restore",
    "run_job",
    "runs_of_suite",
    "score_catalogue",
    "share_interval",
    "sign_flip_test",
    "sign_test",
    "suite_table",
    "task_info",
]


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        new = _RENAMED[name]
        warnings.warn(
            f"gcdbench.api.{name} is called {new} since plugin interface 2; the old name will be removed in the next "
            "release",
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
