"""``gcdbench sweep``: run what is missing from a suite."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import data_root_option, echo_json, json_option, observe_option, runs_option, warn_of_plugins
from gcdbench.cli.sweep_text import (
    Spent,
    plain_plan,
    queued_where,
    run_name,
    show_outcome,
    show_plan,
    show_spent,
    show_submitted,
)

if TYPE_CHECKING:
    from gcdbench.plugins.manager import PluginManager
    from gcdbench.reporting.suites.planning import SuitePlan
    from gcdbench.runs.executors.base import Job, Outcome
    from gcdbench.runs.executors.queue import QueuedJob
    from gcdbench.runs.placement import Placement


@click.command("sweep")
@click.argument("suite_name", metavar="SUITE")
@click.option(
    "--preset", help="One of the suite's presets (default: laptop; required where runs happen on other machines)."
)
@click.option("--protocol", help="Protocol for every dataset (default: the suite's).")
@click.option("--seeds", help="Seeds, for example 0-4 or 0,1,2 (default: the suite's).")
@click.option(
    "--only", "rows", multiple=True, metavar="ROW", help="Only this row or, failing that, this method. May be repeated."
)
@click.option("--dataset", "datasets", multiple=True, help="Only this dataset. May be repeated.")
@click.option(
    "--stand-in",
    type=click.Choice(["never", "missing", "always"]),
    help="When the suite's stand-in takes a dataset's place (default: as the suite says for the preset).",
)
@click.option("--parallel", "-j", type=click.IntRange(min=1), help="Runs at the same time (default: half the cores).")
@click.option(
    "--threads", type=click.IntRange(min=1), help="Threads of each run (default: cores / runs at the same time)."
)
@click.option("--executor", default="process", show_default=True, help="Where runs happen ('gcdbench list executors').")
@click.option(
    "--executor-set",
    "executor_assignments",
    multiple=True,
    metavar="KEY=VALUE",
    help="Option of the executor. May be repeated.",
)
@click.option("--submit", is_flag=True, help="Hand the runs to the engine and exit; 'gcdbench status' shows them.")
@click.option("--device", default=None, help="cpu or cuda (default: cuda if available).")
@click.option("--disk-budget", metavar="SIZE", help="Space for stored views when views=auto decides, e.g. 6GB.")
@click.option("--accept-data-issues", is_flag=True, help="Run on datasets with known problems, and record them.")
@click.option("--dry-run", is_flag=True, help="Show what exists, what is missing and what it may cost; run nothing.")
@observe_option
@data_root_option
@runs_option
@json_option
def command(
    suite_name: str,
    preset: str | None,
    protocol: str | None,
    seeds: str | None,
    rows: tuple[str, ...],
    datasets: tuple[str, ...],
    stand_in: str | None,
    parallel: int | None,
    threads: int | None,
    executor: str,
    executor_assignments: tuple[str, ...],
    submit: bool,
    device: str | None,
    disk_budget: str | None,
    accept_data_issues: bool,
    dry_run: bool,
    observe: tuple[str, ...],
    data_root: Path | None,
    runs: Path,
    as_json: bool,
) -> None:
    """Run what is missing from SUITE (a name of 'gcdbench list suites' or a TOML file), several runs at a time.

    One failure never stops the others; Ctrl-C ends cleanly, and the same command continues.
    """
    from gcdbench.cli.sweep_jobs import drop_queued, local_placement, make_jobs
    from gcdbench.core.config import parse_assignment
    from gcdbench.core.work import available_cores
    from gcdbench.plugins.manager import get_manager
    from gcdbench.reporting.records import cell_records
    from gcdbench.reporting.suites.planning import plan_suite
    from gcdbench.reporting.suites.read import load_suite
    from gcdbench.reporting.suites.seeds import parse_seeds
    from gcdbench.runs.executors.arrival import AUTO, before_leaving
    from gcdbench.runs.executors.making import make_executor, require_preset
    from gcdbench.runs.index import load_runs
    from gcdbench.runs.observers.watch import require_observers
    from gcdbench.runs.placement import Placement

    manager = get_manager()
    warn_of_plugins(manager)
    require_observers(observe, manager)
    spec = manager.get("executors", executor)
    require_preset(spec, preset)
    options = dict(parse_assignment(text) for text in executor_assignments)
    backend = make_executor(spec, options)
    side_by_side = parallel or (0 if spec.remote else max(1, available_cores() // 2))
    asked = Placement(
        runs=runs,
        data_root=data_root,
        device=device or AUTO,
        threads=threads,
        accept_data_issues=accept_data_issues,
        disk_budget=disk_budget,
        observe=observe,
    )
    # What nobody asked for is decided where a run arrives, not here.
    placement = before_leaving(asked) if spec.remote else local_placement(asked, side_by_side)
    suite, records = load_suite(suite_name, manager), cell_records(load_runs(runs))

    def make_suite_plan() -> SuitePlan:
        return plan_suite(
            suite,
            preset or "laptop",
            manager,
            records,
            data_root=data_root,
            seeds=parse_seeds(seeds) if seeds else None,
            protocol=protocol,
            rows=rows,
            datasets=datasets,
            stand_in=stand_in,  # type: ignore[arg-type]  # click allows these three only
            placement=local_placement(asked, side_by_side or 1) if spec.remote else placement,
        )

    plan = make_suite_plan()
    if not spec.remote and _measure_machine(plan, placement, manager):
        plan = make_suite_plan()
    if as_json and dry_run:
        echo_json(plain_plan(plan))
        return
    if not as_json:
        show_plan(plan, side_by_side, every=dry_run)
    if dry_run:
        return
    can_be_left = getattr(backend, "can_be_left", False)
    chosen = drop_queued(plan, runs, spec, can_be_left=can_be_left, quiet=as_json)
    jobs = make_jobs(plan, chosen, placement, spec.name, options)
    if submit:
        queued = _submit(jobs, backend, spec.name, side_by_side, quiet=as_json)
        if as_json:
            echo_json(
                {**plain_plan(plan), "submitted": [asdict(job.job.request) | queued_where(job) for job in queued]}
            )
        else:
            show_submitted([bool(job.engine_job) for job in queued], spec.name, suite_name, runs)
        return
    outcomes, spent = _execute(jobs, backend, side_by_side, quiet=as_json)
    failed = [outcome for outcome in outcomes if outcome.error]
    if spec.remote:  # the cost is measured here
        placement = local_placement(asked, 1)
    unmeasured = _measure(plan, outcomes, runs, placement) if plan.suite.kind == "cost" else {}
    if as_json:
        failures = [{"run": run_name(outcome.job.request), "error": outcome.error} for outcome in failed]
        echo_json({**plain_plan(plan), "failed": failures, "unmeasured": unmeasured, "spent": asdict(spent)})
    else:
        show_outcome(plan, outcomes, failed, suite_name, runs)
        show_spent(spent)
    impossible = plan.in_state("impossible")
    nothing_possible = bool(plan.runs) and len(impossible) == len(plan.runs)
    if failed or unmeasured or nothing_possible or any(run.mistaken for run in impossible):
        raise SystemExit(1)


def _measure_machine(plan: SuitePlan, placement: Placement, manager: PluginManager) -> bool:
    """Measure each method of missing runs on each of its networks, once on this machine, but for short runs."""
    from gcdbench.core.places import cache_dir
    from gcdbench.runs.duration import count_images, is_short
    from gcdbench.runs.executors.base import Job
    from gcdbench.runs.machine_speed import is_measured, measure_in_child
    from gcdbench.runs.plan import make_plan

    cache, device = placement.cache or cache_dir(), placement.device
    seen: set[tuple[str, str, int]] = set()
    measured = False
    for run in plan.in_state("missing"):
        planned = make_plan(run.request, manager)
        subject = (planned.method.name, planned.settings.backbone, planned.settings.image_size)
        if not planned.method.trained or subject in seen:
            continue
        seen.add(subject)
        count = count_images(planned, manager, placement)
        if count is not None and not is_short(planned, count) and not is_measured(cache, planned, device=device):
            measured = True
            measure_in_child(Job(request=run.request, placement=placement))
    return measured


def _execute(jobs: list[Job], backend: Any, side_by_side: int, *, quiet: bool) -> tuple[list[Outcome], Spent]:
    from gcdbench.cli.sweep_progress import SweepDisplay

    if not jobs:
        return [], Spent()
    started = time.monotonic()
    with SweepDisplay({id(job): run_name(job.request) for job in jobs}, quiet=quiet) as display:
        try:
            outcomes: list[Outcome] = backend.run(jobs, parallel=side_by_side, listener=display)
        except KeyboardInterrupt:
            display.stop()
            left = len(jobs) - display.finished
            say(f"Stopped: {display.finished} done, {left} left. The same command continues.", err=True)
            raise
    seconds = time.monotonic() - started
    return outcomes, Spent(
        runs=display.finished,
        seconds=seconds,
        step_share=display.step_seconds / (seconds * min(side_by_side or len(jobs), len(jobs))),
    )


def _submit(jobs: list[Job], backend: Any, executor: str, side_by_side: int, *, quiet: bool) -> list[QueuedJob]:
    from gcdbench.cli.sweep_progress import SweepDisplay
    from gcdbench.core.errors import ConfigError
    from gcdbench.runs.executors.remote import RemoteExecutor

    if not isinstance(backend, RemoteExecutor) or not backend.can_be_left:
        raise ConfigError(
            f"The executor '{executor}' needs this command until the last run is done, so --submit is not possible.",
            hint="Leave --submit out, or use --executor slurm.",
        )
    display = SweepDisplay({id(job): run_name(job.request) for job in jobs}, quiet=quiet)
    queued: list[QueuedJob] = backend.submit(jobs, parallel=side_by_side, listener=display) if jobs else []
    return queued


def _measure(plan: SuitePlan, outcomes: list[Outcome], runs: Path, placement: Placement) -> dict[str, str]:
    """Measure the cost of every finished run of the suite that has none yet; why it failed, by run."""
    from gcdbench.reporting.suites.costs import measure_runs
    from gcdbench.runs.index import find_run

    paths = [find_run(runs, run.run_id) for run in plan.in_state("done")]
    paths += [Path(outcome.path) for outcome in outcomes if not outcome.error]
    errors = measure_runs(paths, device=placement.device, threads=placement.threads or 1)
    for run_id, error in errors.items():
        say(f"The cost of run {run_id} could not be measured: {error}", err=True)
    return errors
