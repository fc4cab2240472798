"""``gcdbench status``: every run and its state."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from gcdbench.cli.options import echo_json, json_option, runs_option


@click.command("status")
@runs_option
@json_option
def command(runs: Path, as_json: bool) -> None:
    """List runs: done, failed, running, interrupted, stale or unreadable."""
    from gcdbench.runs.index import load_runs

    entries = load_runs(runs)
    if as_json:
        echo_json(
            [
                {
                    "run_id": e.run_id,
                    "path": str(e.path),
                    "status": e.status,
                    "problem": e.problem,
                    **{
                        key: e.record.get(key) for key in ("dataset", "method", "variant", "preset", "protocol", "seed")
                    },
                }
                for e in entries
            ]
        )
        return
    if not entries:
        click.echo(f"No runs in '{runs}' yet; 'gcdbench run --method kmeans --dataset phantom' makes one.")
        return
    for e in entries:
        name = f"{e.record.get('dataset', '?')}/{e.record.get('method', '?')}"
        variant = f":{e.record['variant']}" if e.record.get("variant") else ""
        said = [e.record.get(key) for key in ("preset", "protocol", "views")]
        size = e.record.get("image_size")
        said.append(f"{size} px" if size else None)
        settings = ", ".join(text for text in said if text and text != "none")
        problem = f"  {e.problem}" if e.problem else ""
        click.echo(f"{e.status:<12}{e.run_id}  {name}{variant} seed {e.record.get('seed', '?')}  {settings}{problem}")
    counts = Counter(e.status for e in entries)
    click.echo(", ".join(f"{count} {status}" for status, count in sorted(counts.items())))
