"""``gcdbench verify``: is every stored run still what it was?"""

from __future__ import annotations

from pathlib import Path

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import echo_json, json_option, require_runs, runs_option


@click.command("verify")
@click.argument("run", required=False)
@runs_option
@json_option
def command(run: str | None, runs: Path, as_json: bool) -> None:
    """Compare every stored file of RUN, or of every run, with its hash; exit code 1 when something is damaged."""
    from gcdbench.plugins.manager import get_manager
    from gcdbench.runs.directory import RunDirectory
    from gcdbench.runs.index import find_run, load_runs
    from gcdbench.runs.integrity import check_run

    if run:
        paths = [find_run(runs, run)]
    else:
        entries = load_runs(runs, indexed=False)
        require_runs(runs, entries)
        paths = [entry.path for entry in entries]
    checked = [check_run(RunDirectory(path), get_manager()) for path in paths]
    damaged = [found for found in checked if found.damages]
    if as_json:
        echo_json(
            [
                {
                    "run_id": found.path.name,
                    "path": str(found.path),
                    "finished": found.finished,
                    "files": found.files,
                    "absent": list(found.absent),
                    "damages": [
                        {"file": damage.file, "problem": damage.problem, "restorable": damage.restorable}
                        for damage in found.damages
                    ],
                }
                for found in checked
            ]
        )
    else:
        for found in damaged:
            for damage in found.damages:
                say(f"damaged  {found.path.name}  {damage.problem}")
            mended = all(damage.restorable for damage in found.damages)
            way = f"'gcdbench rescore {found.path.name}' restores it" if mended else "make it again with --force"
            say(f"         {way}, or restore the run from a copy.")
        absent = sum(len(found.absent) for found in checked)
        left_out = f" {absent} weight or embedding file(s) are not here." if absent else ""
        say(
            f"Checked {sum(found.finished for found in checked)} finished run(s), "
            f"{sum(found.files for found in checked)} file(s) with a hash: {len(damaged)} run(s) damaged.{left_out}"
        )
    if damaged:
        raise SystemExit(1)
