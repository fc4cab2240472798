"""``gcdbench name``: what people decided about the clusters of a run."""

from __future__ import annotations

from pathlib import Path

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import echo_json, json_option, runs_option


@click.command("name")
@click.argument("run")
@click.argument("names", type=click.Path(path_type=Path, dir_okay=False))
@runs_option
@json_option
def command(run: str, names: Path, runs: Path, as_json: bool) -> None:
    """Store the decisions of a names.toml in a run and in its model; they replace all earlier ones.

    'gcdbench predict' then prints these names, clusters that were merged answer as one, and images of rejected
    clusters are marked as such. The gallery saves such a file.
    """
    from gcdbench.runs.directory import RunDirectory
    from gcdbench.runs.index import find_run
    from gcdbench.runs.naming import read_decision_file, store_decisions

    decisions = read_decision_file(names)
    directory = RunDirectory(find_run(runs, run))
    card = store_decisions(directory, decisions)
    if as_json:
        echo_json(
            {
                "run": decisions.run,
                "path": str(directory.path),
                "named": {str(number): name for number, name in sorted(decisions.clusters.items())},
                "merged": {str(number): into for number, into in sorted(decisions.merged.items())},
                "rejected": sorted(decisions.rejected),
                "model": card is not None,
            }
        )
        return
    say(
        f"{len(decisions.clusters)} cluster(s) named, {len(decisions.merged)} merged, {len(decisions.rejected)} "
        f"rejected in {directory.path}" + ("." if card is not None else "; the run has no model to put them into.")
    )
