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
    from gcdbench.runs.index import RunEntry


@click.command("status")
@runs_option
@json_option
def command(runs: Path, as_json: bool) -> None:
    """List runs: done, failed, running, interrupted, stale or unreadable."""
    from gcdbench.reporting.run_marks import told_apart
    from gcdbench.runs.index import load_runs

    entries = load_runs(runs)
    waiting = _waiting(runs, entries)
    if as_json:
        echo_json([*map(_plain, entries), *map(_plain_job, waiting)])
        return
    if not entries and not waiting:
        say(f"No runs in '{runs}' yet; 'gcdbench run --method kmeans --dataset phantom' makes one.")
        return
    counts = Counter([entry.status for entry in entries] + [job.state for job in waiting])
    names, settings = told_apart(entries), _settings(entries)
    total = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    say(
        "\n".join(
            map(one_line, [*(_line(entry, names, settings) for entry in entries), *map(_job_line, waiting), total])
        )
    )


def _settings(entries: list[RunEntry]) -> dict[str, str]:
    """By a run's settings: what tells it from others of its name."""
    from gcdbench.plugins.manager import get_manager
    from gcdbench.reporting.replicates import group_replicates
    from gcdbench.reporting.telling_settings import telling_settings

    groups = group_replicates(entry for entry in entries if entry.settings)
    told = telling_settings(groups, get_manager())
    return {entry.settings: told[key] for key, members in groups.items() for entry in members}


def _waiting(runs: Path, entries: list[RunEntry]) -> list[SeenJob]:
    """Jobs with an engine whose run has no line of its own yet, or was lost by its engine."""
    from gcdbench.runs.executors.looking import look_at_queue
    from gcdbench.runs.executors.queue import FOLDER

    if not (runs / FOLDER).is_dir():
        return []
    begun = {str(Path(entry.place).absolute()) for entry in entries}
    return [job for job in look_at_queue(runs) if job.run not in begun]


def _job_line(job: SeenJob) -> str:
    request, queued = job.queued.job.request, job.queued
    name = f"{request.dataset}/{request.method}" + (f":{request.variant}" if request.variant else "")
    where = f"{queued.engine} job {queued.engine_job or '?'}, attempt {queued.attempt} of {queued.attempts}"
    problem = f"  {job.problem}" if job.problem else ""
    return f"{job.state:<12}{queued.key}  {name} seed {request.seed}  {request.preset or ''}, {where}{problem}"


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


def _line(entry: RunEntry, names: Mapping[tuple[str, str], str], told: Mapping[str, str]) -> str:
    dataset = names.get((entry.dataset, entry.images), entry.dataset)
    name = f"{dataset}/{entry.method}" + (f":{entry.variant}" if entry.variant else "")
    size = f"{entry.image_size} px" if entry.image_size else ""
    said = (entry.preset, entry.protocol, entry.views, size, told.get(entry.settings, ""))
    settings = ", ".join(text for text in said if text and text != "none")
    seed = entry.seed if entry.settings else "?"
    problem = f"  {entry.problem}" if entry.problem else ""
    return f"{entry.status:<12}{entry.run_id}  {name} seed {seed}  {settings}{problem}"


def _plain(entry: RunEntry) -> dict[str, object]:
    known = bool(entry.settings)
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
    }
