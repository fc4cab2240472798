"""From the missing runs of a sweep to jobs: where they are placed, and which of them an engine has already."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gcdbench.cli.echo import say

if TYPE_CHECKING:
    from gcdbench.plugins.specs import ExecutorSpec
    from gcdbench.reporting.suites.planning import PlannedRun, SuitePlan
    from gcdbench.runs.executors.base import Job
    from gcdbench.runs.placement import Placement


def local_placement(asked: Placement, side_by_side: int) -> Placement:
    """What was asked for, on this machine: runs share its cores."""
    from dataclasses import replace

    from gcdbench.core.work import available_cores
    from gcdbench.runs.executors.arrival import AUTO
    from gcdbench.runs.plan import detect_gpu

    share = max(1, available_cores() // side_by_side)
    device = ("cuda" if detect_gpu() else "cpu") if asked.device == AUTO else asked.device
    return replace(asked, device=device, threads=asked.threads or share, workers=share)


def make_jobs(
    plan: SuitePlan,
    chosen: list[PlannedRun],
    placement: Placement,
    executor: str,
    options: Mapping[str, object],
) -> list[Job]:
    """One job for each run, with what its row asks of the executor; the command line wins over the row."""
    from gcdbench.runs.executors.base import Job

    rows = {row.key: row.executor.get(executor, {}) for row in plan.suite.rows}
    return [
        Job(request=run.request, placement=placement, options={**rows.get(run.row, {}), **options}) for run in chosen
    ]


def drop_queued(plan: SuitePlan, runs: Path, spec: ExecutorSpec, *, can_be_left: bool, quiet: bool) -> list[PlannedRun]:
    """The runs to be done: not those that another engine has, but those that this one has, to be watched.

    can_be_left: whether jobs of this engine continue without the sweep that sent them; otherwise they are left to that
    sweep.
    """
    from gcdbench.runs.executors.looking import look_at_queue
    from gcdbench.runs.executors.queue import FOLDER, request_key

    missing = plan.in_state("missing")
    if not (runs / FOLDER).is_dir():
        return missing
    alive = {job.queued.key: job.queued.engine for job in look_at_queue(runs, forget=True) if job.alive}
    mine = spec.name if can_be_left else ""
    engine = {id(run): alive.get(request_key(run.request), "") for run in plan.runs}
    elsewhere = [run for run in missing if engine[id(run)] not in ("", mine)]
    if elsewhere and not quiet:
        names = ", ".join(sorted({engine[id(run)] for run in elsewhere}))
        say(f"{len(elsewhere)} runs are left to {names}, which already has them from another sweep.")
    running = [run for run in plan.in_state("running") if mine and engine[id(run)] == mine]
    return [run for run in missing if engine[id(run)] in ("", mine)] + running
