"""What the scripts that train or load a model take from inside gcdbench; as :mod:`_inside`, it goes."""

from gcdbench.core.config import apply_overrides
from gcdbench.plugins.manager import get_manager
from gcdbench.reporting.explain.explanation import load_predictions
from gcdbench.reporting.explain.images import Images, open_images
from gcdbench.reporting.explain.restore import Trained, restore
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.index import find_run
from gcdbench.runs.plan import Placement, RunRequest, make_plan
from gcdbench.runs.runner import make_context, prepare_data
from gcdbench.training.optimiser import make_optimiser

__all__ = [
    "Images",
    "Placement",
    "RunDirectory",
    "RunRequest",
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
]
