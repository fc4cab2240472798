"""``gcdbench rescore``: all scores again, from stored predictions."""

from __future__ import annotations

from pathlib import Path

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import require_runs, runs_option


@click.command("rescore")
@click.argument("run", required=False)
@runs_option
def command(run: str | None, runs: Path) -> None:
    """Compute scores again from stored predictions: of RUN, or of every finished run.

    A run whose scores are lost or damaged and whose predictions are intact gets its scores back.
    """
    from gcdbench.core.errors import GCDBenchError
    from gcdbench.plugins.manager import get_manager
    from gcdbench.runs.directory import RunDirectory
    from gcdbench.runs.evaluate import rescore
    from gcdbench.runs.index import find_run, load_runs
    from gcdbench.runs.record import DONE, UNREADABLE

    manager = get_manager()
    problems: dict[Path, str] = {}
    if run:
        paths = [find_run(runs, run)]
    else:
        entries = load_runs(runs, indexed=False)
        require_runs(runs, entries)
        paths = [entry.path for entry in entries if entry.status in (DONE, UNREADABLE)]
        problems = {entry.path: entry.problem for entry in entries if entry.status == UNREADABLE}
    changed = added = restored = failed = 0
    broken: dict[str, str] = {}
    for path in paths:
        try:
            found = rescore(RunDirectory(path), manager)
            if path in problems and not found.restored:  # what cannot be read of it are not its scores
                raise GCDBenchError(problems[path])
        except GCDBenchError as error:
            failed += 1
            say(f"{path.name}: {error.message}", err=True)
            continue
        broken |= found.scores.metric_errors
        changed += len(found.changed)
        added += len(found.added)
        restored += found.restored
        if found.restored:
            say(f"{path.name}: scores restored from the predictions")
        if found.changed:
            say(f"{path.name}: changed {', '.join(found.changed)}")
        if found.added:
            say(f"{path.name}: new {', '.join(found.added)}")
    back = f", {restored} run(s) restored" if restored else ""
    say(
        f"Rescored {len(paths) - failed} run(s): {changed} score(s) changed, {added} new{back}, {failed} run(s) failed."
    )
    for name, problem in sorted(broken.items()):
        say(f"The metric '{name}' failed: {problem}", err=True)
    if failed or broken:
        raise SystemExit(1)
