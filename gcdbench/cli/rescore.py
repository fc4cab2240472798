"""``gcdbench rescore``: all scores again, from stored predictions."""

from __future__ import annotations

from pathlib import Path

import click

from gcdbench.cli.options import require_runs, runs_option


@click.command("rescore")
@click.argument("run", required=False)
@runs_option
def command(run: str | None, runs: Path) -> None:
    """Compute scores again from stored predictions: of RUN, or of every finished run."""
    from gcdbench.core.errors import GCDBenchError
    from gcdbench.plugins.manager import get_manager
    from gcdbench.runs.directory import DONE, RunDirectory
    from gcdbench.runs.evaluate import rescore
    from gcdbench.runs.index import find_run, load_runs

    manager = get_manager()
    if run:
        paths = [find_run(runs, run)]
    else:
        entries = load_runs(runs)
        require_runs(runs, entries)
        paths = [entry.path for entry in entries if entry.status == DONE]
    changed = added = failed = 0
    broken: dict[str, str] = {}
    for path in paths:
        try:
            different, new = rescore(RunDirectory(path), manager)
        except GCDBenchError as error:
            failed += 1
            click.echo(f"{path.name}: {error.message}", err=True)
            continue
        broken |= RunDirectory(path).scores().get("metric_errors") or {}
        changed += len(different)
        added += len(new)
        if different:
            click.echo(f"{path.name}: changed {', '.join(different)}")
        if new:
            click.echo(f"{path.name}: new {', '.join(new)}")
    click.echo(
        f"Rescored {len(paths) - failed} run(s): {changed} score(s) changed, {added} new, {failed} run(s) failed."
    )
    for name, problem in sorted(broken.items()):
        click.echo(f"The metric '{name}' failed: {problem}", err=True)
    if failed or broken:
        raise SystemExit(1)
