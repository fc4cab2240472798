"""``gcdbench status``: every run and its state."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gcdbench.cli.options import echo_json, json_option, runs_option

if TYPE_CHECKING:
    from gcdbench.runs.index import RunEntry


@click.command("status")
@runs_option
@json_option
def command(runs: Path, as_json: bool) -> None:
    """List runs: done, failed, running, interrupted, stale or unreadable."""
    from gcdbench.runs.index import load_runs

    entries = load_runs(runs)
    if as_json:
        echo_json([_plain(entry) for entry in entries])
        return
    if not entries:
        click.echo(f"No runs in '{runs}' yet; 'gcdbench run --method kmeans --dataset phantom' makes one.")
        return
    counts = Counter(entry.status for entry in entries)
    total = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    click.echo("\n".join([*map(_line, entries), total]))


def _line(entry: RunEntry) -> str:
    name = f"{entry.dataset}/{entry.method}" + (f":{entry.variant}" if entry.variant else "")
    said = (entry.preset, entry.protocol, entry.views, f"{entry.image_size} px" if entry.image_size else "")
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
