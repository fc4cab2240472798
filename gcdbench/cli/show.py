"""``gcdbench show``: one run, whole."""

from __future__ import annotations

from pathlib import Path

import click

from gcdbench.cli.options import echo_json, json_option, runs_option


@click.command("show")
@click.argument("run")
@runs_option
@json_option
def command(run: str, runs: Path, as_json: bool) -> None:
    """Show one run: RUN is its id, the start of it, or its directory."""
    from gcdbench.cli.present import score_lines
    from gcdbench.core.files import read_json
    from gcdbench.runs.directory import DONE, RunDirectory
    from gcdbench.runs.index import find_run

    directory = RunDirectory(find_run(runs, run))
    record, status = directory.record(), directory.status()
    scores = directory.scores() if status == DONE else {}
    if as_json:
        environment = read_json(directory.path / "env.json")
        echo_json({"status": status, "record": record, "scores": scores, "environment": environment})
        return
    click.echo(f"{record['method']} on {record['dataset']}, run {record['run_id']}: {status}")
    for key in ("variant", "preset", "protocol", "seed", "backbone", "image_size", "views", "started", "finished"):
        if record.get(key) is not None:
            click.echo(f"  {key:<12}{record[key]}")
    for name, seconds in (record.get("seconds") or {}).items():
        click.echo(f"  {name:<12}{seconds} s")
    if record.get("resumed"):
        click.echo("  time        not known: the run was interrupted and continued, 'started' is of its last part")
    if record.get("error"):
        click.echo(f"  error       {record['error']}")
        click.echo(str(record.get("traceback") or "").rstrip())
    if scores:
        for line in score_lines(record, scores):
            click.echo(line)
    click.echo(f"  directory   {directory.path}")
    click.echo((directory.path / "config.toml").read_text())
