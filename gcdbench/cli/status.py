"""``gcdbench status``: every run and its state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import echo_json, json_option, runs_option
from gcdbench.core.printable import one_line

if TYPE_CHECKING:
    from gcdbench.runs.executors.looking import SeenJob
    from gcdbench.runs.run_entry import RunEntry


@click.command("status")
@runs_option
@json_option
def command(runs: Path, as_json: bool) -> None:
    """List runs: done, failed, running, interrupted, stale or unreadable."""
    from gcdbench.reporting.run_marks import told_apart
    from gcdbench.runs.index import load_runs

    entries = load_runs(runs)
    jobs = _jobs(runs)
    begun = {str(Path(entry.place).absolute()) for entry in entries}
    waiting = [job for job in jobs if job.run not in begun]
    by_run = {job.run: job for job in jobs if job.run and job.alive}
    if as_json:
        echo_json([*(_plain(entry, by_run) for entry in entries), *map(_plain_job, waiting)])
        return
    if not entries and not waiting:
        say(f"No runs in '{runs}' yet; 'gcdbench run --method kmeans --dataset phantom' makes one.")
        return
    counts = Counter([entry.status for entry in entries] + [job.state for job in waiting])
    names, settings = told_apart(entries), _settings(entries)
    total = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    lines = [*(_line(entry, names, settings, by_run) for entry in entries), *map(_job_line, waiting), total]
    say("\n".join(map(one_line, lines)))


def _settings(entries: list[RunEntry]) -> dict[str, str]:
    """By a run's settings: what distinguishes it from others of its name."""
    from gcdbench.plugins.manager import get_manager
    from gcdbench.reporting.replicates import group_replicates
    from gcdbench.reporting.telling_settings import telling_settings

    groups = group_replicates(entry for entry in entries if entry.settings)
    told = telling_settings(groups, get_manager())
    return {entry.settings: told[key] for key, members in groups.items() for entry in members}


def _jobs(runs: Path) -> list[SeenJob]:
    """Jobs with an engine whose run is not done."""
    from gcdbench.runs.executors.looking import look_at_queue
    from gcdbench.runs.executors.queue import FOLDER

    if not (runs / FOLDER).is_dir():
        return []
    return look_at_queue(runs)


def _job_of(entry: RunEntry, by_run: Mapping[str, SeenJob]) -> SeenJob | None:
    return by_run.get(str(Path(entry.place).absolute()))


def _where(job: SeenJob) -> str:
    queued = job.queued
    return f"{queued.engine} job {queued.engine_job or '?'}, attempt {queued.attempt} of {queued.attempts}"


def _job_line(job: SeenJob) -> str:
    request, queued = job.queued.job.request, job.queued
    name = f"{request.dataset}/{request.method}" + (f":{request.variant}" if request.variant else "")
    problem = f"  {job.problem}" if job.problem else ""
    return f"{job.state:<12}{queued.key}  {name} seed {request.seed}  {request.preset or ''}, {_where(job)}{problem}"


def _plain_job(job: SeenJob) -> dict[str, object]:
    request = job.queued.job.request
    return {
        "run_id": None,
        "path": job.run or None,
        "status": job.state,
        "problem": job.problem,
        "dataset": request.dataset,
        "method": request.method,
        "variant": request.variant,
        "preset": request.preset,
        "protocol": request.protocol,
        "seed": request.seed,
        "engine": job.queued.engine,
        "engine_job": job.queued.engine_job,
        "attempt": job.queued.attempt,
    }


def _line(
    entry: RunEntry, names: Mapping[tuple[str, str], str], told: Mapping[str, str], by_run: Mapping[str, SeenJob]
) -> str:
    dataset = names.get((entry.dataset, entry.images), entry.dataset)
    name = f"{dataset}/{entry.method}" + (f":{entry.variant}" if entry.variant else "")
    size = f"{entry.image_size} px" if entry.image_size else ""
    said = (entry.preset, entry.protocol, entry.views, size, told.get(entry.settings, ""))
    settings = ", ".join(text for text in said if text and text != "none")
    seed = entry.seed if entry.settings else "?"
    problem = f"  {entry.problem}" if entry.problem else ""
    # A run that was interrupted may have its next attempt in the queue.
    job = _job_of(entry, by_run)
    where = f"  {job.state}: {_where(job)}" if job is not None else ""
    return f"{entry.status:<12}{entry.run_id}  {name} seed {seed}  {settings}{problem}{where}"


def _plain(entry: RunEntry, by_run: Mapping[str, SeenJob]) -> dict[str, object]:
    known = bool(entry.settings)
    job = _job_of(entry, by_run)
    engine = {"engine": job.queued.engine, "engine_job": job.queued.engine_job, "job_status": job.state} if job else {}
    return {
        "run_id": entry.run_id,
        "path": entry.place,
        "status": entry.status,
        "problem": entry.problem,
        "dataset": entry.dataset,
        "method": entry.method,
        "variant": entry.variant or None,
        "preset": entry.preset if known else None,
        "protocol": entry.protocol if known else None,
        "seed": entry.seed if known else None,
        **engine,
    }
