"""``gcdbench show``: one run, whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import echo_json, json_option, runs_option
from gcdbench.core.printable import one_line

if TYPE_CHECKING:
    from gcdbench.runs.record import Record


@click.command("show")
@click.argument("run")
@runs_option
@json_option
def command(run: str, runs: Path, as_json: bool) -> None:
    """Show one run: RUN is its id, the start of it, or its directory."""
    from gcdbench.cli.present import score_lines
    from gcdbench.runs.directory import RunDirectory
    from gcdbench.runs.index import find_run
    from gcdbench.runs.reader import CONFIG, read_checked

    directory = RunDirectory(find_run(runs, run))
    record = directory.record()
    status = directory.state_of(record)
    if as_json:
        echo_json(
            {
                "status": status,
                "record": record.to_table(),
                "scores": record.scores.to_table() if record.scores else {},
                "environment": record.environment.to_table(),
            }
        )
        return
    say(one_line(f"{record.method} on {record.dataset}, run {record.run_id}: {status}"))
    for name, text in _facts(record).items():
        say(one_line(f"  {name:<12}{text}"))
    if record.error:
        say(one_line(f"  error       {record.error}"))
        say(record.traceback.rstrip())
    if record.scores:
        for line in score_lines(record, record.scores, all_issues=True):
            say(one_line(line))
    if directory.next_dir.is_dir():
        say("  repetition  was begun and did not finish; 'gcdbench run --force' continues it")
    say(f"  directory   {directory.path}")
    if (record.home / CONFIG).exists():  # an archive leaves it out where it names files
        say(read_checked(record, CONFIG).decode(errors="replace"))


def _facts(record: Record) -> dict[str, str]:
    from gcdbench.runs.numerics import NOT_RECORDED

    facts = {
        "variant": record.variant or "",
        "preset": record.preset,
        "protocol": record.protocol,
        "seed": str(record.seed),
        "backbone": record.backbone,
        "image_size": str(record.image_size),
        "views": record.views,
        "started": record.started,
        "finished": record.finished,
        **{name: f"{seconds} s" for name, seconds in record.seconds.items()},
        "numerics": str(record.environment.numerics or NOT_RECORDED),
    }
    if record.resumed:
        facts["time"] = "not known: the run was interrupted and continued, and 'started' is the start of its last part"
    return {name: text for name, text in facts.items() if text}
