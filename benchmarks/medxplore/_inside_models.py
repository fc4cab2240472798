"""What the scripts that train or load a model take from inside gcdbench; as :mod:`_inside`, it goes."""

from gcdbench.core.config import apply_overrides
from gcdbench.plugins.manager import get_manager
from gcdbench.reporting.explain.images import Images, open_images
from gcdbench.reporting.explain.restore import Trained, restore
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.execution import Execution, make_context, prepare_data, task_info
from gcdbench.runs.index import find_run
from gcdbench.runs.placement import Placement
from gcdbench.runs.plan import make_plan
from gcdbench.runs.predictions import load_predictions
from gcdbench.runs.request import Request
from gcdbench.training.optimiser import make_optimiser

__all__ = [
    "Execution",
    "Images",
    "Placement",
    "Request",
    "RunDirectory",
    "Trained",
    "apply_overrides",
    "find_run",
    "get_manager",
    "load_predictions",
    "make_context",
    "make_optimiser",
    "make_plan",
    "open_images",
    "prepare_data",
    "restore",
    "task_info",
]
