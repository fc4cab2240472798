"""Suites from Python: run what is missing, and the table of what is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gcdbench.core.errors import ConfigError
from gcdbench.plugins.manager import get_manager
from gcdbench.reporting.frontdoor.one_run import PathLike
from gcdbench.reporting.frontdoor.stored_runs import results
from gcdbench.reporting.records import cell_records
from gcdbench.reporting.tables.model import ResultTable
from gcdbench.runs.index import load_runs
from gcdbench.runs.record import TRANSDUCTIVE

if TYPE_CHECKING:
    import pandas as pd


def sweep(
    suite: str,
    *,
    preset: str = "laptop",
    seeds: Sequence[int] | None = None,
    rows: Sequence[str] = (),
    datasets: Sequence[str] = (),
    protocol: str | None = None,
    runs: PathLike = "runs",
    data_root: PathLike | None = None,
    executor: str = "process",
    executor_options: Mapping[str, object] | None = None,
    parallel: int | None = None,
    device: str | None = None,
) -> pd.DataFrame:
    """Run what is missing from a suite and return its runs as :func:`results` does, with the errors of those that
    failed.

    ``suite`` is a name (``gcdbench list suites``) or a TOML file.
    """
    from gcdbench.core.work import available_cores
    from gcdbench.reporting.suites.planning import plan_suite
    from gcdbench.reporting.suites.read import load_suite
    from gcdbench.runs.executors.base import Job
    from gcdbench.runs.executors.making import make_executor
    from gcdbench.runs.placement import Placement
    from gcdbench.runs.plan import detect_gpu

    manager, store = get_manager(), Path(runs)
    root = None if data_root is None else Path(data_root)
    plan = plan_suite(
        load_suite(suite, manager),
        preset,
        manager,
        cell_records(load_runs(store)),
        data_root=root,
        seeds=seeds,
        protocol=protocol,
        rows=rows,
        datasets=datasets,
    )
    side_by_side = parallel or max(1, available_cores() // 2)
    share = max(1, available_cores() // side_by_side)
    placement = Placement(
        runs=store.absolute(),
        data_root=root,
        device=device or ("cuda" if detect_gpu() else "cpu"),
        threads=share,
        workers=share,
    )
    options = {key: str(value) for key, value in (executor_options or {}).items()}
    engine = make_executor(manager.get("executors", executor), options)
    jobs = [Job(request=planned.request, placement=placement) for planned in plan.in_state("missing")]
    outcomes = engine.run(jobs, parallel=side_by_side, listener=lambda job, event: None) if jobs else []
    wanted = {planned.run_id for planned in plan.in_state("done")} | {Path(outcome.path).name for outcome in outcomes}
    found = results(store)
    frame = found[found["run_id"].isin(wanted)].reset_index(drop=True)
    frame.attrs["errors"] = [outcome.error for outcome in outcomes if outcome.error]
    return frame


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of results: ``entries`` as a DataFrame, or rendered as text, Markdown, LaTeX, CSV, JSON or HTML."""

    content: ResultTable

    @property
    def entries(self) -> pd.DataFrame:
        """One row per line, column and score of the table: n, mean, sd, interval, published value, run ids."""
        import pandas as pd

        from gcdbench.reporting.tables.render import plain

        return pd.DataFrame(plain(self.content)["entries"])

    def render(self, format_name: str = "text", layout: Literal["auto", "long", "wide", "tall"] = "auto") -> str:
        """The table in one of the formats of ``gcdbench table --format``."""
        from gcdbench.reporting.tables.render import render

        return render(self.content, format_name, layout)

    def __str__(self) -> str:
        return self.render()

    def _repr_html_(self) -> str:
        return self.render("html")


def table(
    suite: str | None = None,
    *,
    runs: PathLike = "runs",
    preset: str | None = None,
    protocol: str | None = None,
    seeds: Sequence[int] | None = None,
    scores: Sequence[str] | None = None,
    evaluation: str = TRANSDUCTIVE,
    against: str | None = None,
) -> Table:
    """A suite's table, or, without one, all runs; ``against`` a row, the paired differences to it."""
    from gcdbench.reporting.suites.read import load_suite
    from gcdbench.reporting.tables.bootstrap import RunBootstrap
    from gcdbench.reporting.tables.plain import plain_table
    from gcdbench.reporting.tables.suite_table import suite_table

    manager = get_manager()
    records = cell_records(load_runs(Path(runs)), evaluation)
    if suite is None:
        if against is not None:
            raise ConfigError("Differences to a row need a suite.", hint="For example table('main', against='simgcd').")
        return Table(content=plain_table(records, manager, tuple(scores or ("all", "old", "new"))))
    content = suite_table(
        load_suite(suite, manager),
        records,
        manager,
        preset=preset,
        seeds=seeds,
        protocol=protocol,
        scores=scores,
        evaluation=evaluation,
        bootstrap=RunBootstrap(evaluation),
        against=against,
    )
    return Table(content=content)
