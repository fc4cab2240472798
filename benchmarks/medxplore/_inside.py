"""Everything that the pages of this study take from inside gcdbench, in one place.

Scripts use ``gcdbench.api``, ``gcdbench.plugins`` and ``gcdbench.testing`` themselves. What is below has no public name
yet; once ``import gcdbench`` offers results, tables and scores, this module goes. :mod:`_inside_models` has what the
scripts that train or load a model need.
"""

from gcdbench.core.config import flatten
from gcdbench.datasets.protocols import card_of, default_protocol
from gcdbench.metrics.error_terms import BY_MAP
from gcdbench.plugins.manager import get_manager
from gcdbench.reporting.published.reported import read_reported
from gcdbench.reporting.records import CellRecord, cell_records
from gcdbench.reporting.statistics import PairedDifference, paired_difference
from gcdbench.reporting.suites.finding import FROM_DATA
from gcdbench.reporting.suites.read import load_suite
from gcdbench.reporting.suites.seeds import parse_seeds
from gcdbench.reporting.tables.bootstrap import RunBootstrap
from gcdbench.reporting.tables.grid import mean_text
from gcdbench.reporting.tables.model import ResultTable
from gcdbench.reporting.tables.render import render
from gcdbench.reporting.tables.suite_table import runs_of_suite, suite_table
from gcdbench.runs.events import EpochEnd
from gcdbench.runs.index import load_runs
from gcdbench.runs.plan import Materials, make_plan
from gcdbench.runs.reader import read_record
from gcdbench.runs.record import DONE, TRANSDUCTIVE
from gcdbench.runs.request import Request

__all__ = [
    "BY_MAP",
    "DONE",
    "FROM_DATA",
    "TRANSDUCTIVE",
    "CellRecord",
    "EpochEnd",
    "Materials",
    "PairedDifference",
    "Request",
    "ResultTable",
    "RunBootstrap",
    "card_of",
    "cell_records",
    "default_protocol",
    "flatten",
    "get_manager",
    "load_runs",
    "load_suite",
    "make_plan",
    "mean_text",
    "paired_difference",
    "parse_seeds",
    "read_record",
    "read_reported",
    "render",
    "runs_of_suite",
    "suite_table",
]
