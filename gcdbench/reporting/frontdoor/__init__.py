"""What ``import gcdbench`` offers: a run, a sweep, results as a DataFrame, tables, scores and saved models."""

from gcdbench.reporting.frontdoor.discoveries import Discovery, discover
from gcdbench.reporting.frontdoor.one_run import Run, load, run
from gcdbench.reporting.frontdoor.scoring import score
from gcdbench.reporting.frontdoor.stored_runs import results
from gcdbench.reporting.frontdoor.whole_suites import Table, sweep, table

__all__ = ["Discovery", "Run", "Table", "discover", "load", "results", "run", "score", "sweep", "table"]
