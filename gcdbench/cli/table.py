"""``gcdbench table``: results as a table, in any format."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import json_option, require_runs, runs_option

if TYPE_CHECKING:
    from gcdbench.reporting.records import CellRecord
    from gcdbench.reporting.suites.model import Suite
    from gcdbench.reporting.tables.grid import Layout
    from gcdbench.reporting.tables.model import ResultTable

LAYOUTS = ("auto", "long", "wide", "tall")


@click.command("table")
@click.argument("suite_name", required=False, metavar="[SUITE]")
@click.option("--preset", help="Preset of the runs (default: the suite's first preset that has runs).")
@click.option("--protocol", help="Protocol of the runs (default: the suite's).")
@click.option("--seeds", help="Seeds to expect, for example 0-4 or 0,1,2 (default: the suite's).")
@click.option("--scores", help="Scores to show, separated by commas, for example all,old,new,nmi.")
@click.option("--test", "inductive", is_flag=True, help="Scores on the untouched test part instead of D_u.")
@click.option("--format", "format_name", help="text, markdown, latex, csv, json or html (default: by --output).")
@click.option(
    "--layout",
    type=click.Choice(LAYOUTS),
    default="auto",
    show_default=True,
    help="long: one line per method; wide: as in a paper; tall: one line per score; auto: long, or tall with four or "
    "more scores.",
)
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file.")
@click.option("--against", metavar="ROW", help="Differences to this row over shared seeds, with a paired test.")
@click.option("--explain", nargs=2, metavar="METHOD DATASET", help="Name the runs behind a cell.")
@click.option("--check", type=click.Path(path_type=Path), help="Fail when FILE is not what the runs give now.")
@runs_option
@json_option
def command(
    suite_name: str | None,
    preset: str | None,
    protocol: str | None,
    seeds: str | None,
    scores: str | None,
    inductive: bool,
    format_name: str | None,
    layout: Layout,
    output: Path | None,
    against: str | None,
    explain: tuple[str, str] | None,
    check: Path | None,
    runs: Path,
    as_json: bool,
) -> None:
    """Print a suite's table, or, without SUITE, all runs so far.

    SUITE is the name of an installed suite ('gcdbench list suites') or a TOML file. Cells: mean ± sd over n seeds,
    95 % interval, and the published value with the difference where there is one.
    """
    from gcdbench.plugins.manager import get_manager
    from gcdbench.reporting.records import cell_records
    from gcdbench.reporting.suites.read import load_suite
    from gcdbench.reporting.suites.seeds import parse_seeds
    from gcdbench.reporting.tables.render import SUFFIXES, render
    from gcdbench.runs.index import load_runs

    given = {"explain": explain, "against": against, "check": check, "output": output, "format": format_name}
    _refuse_contradictions({**given, "json": as_json, "seeds": seeds}, of_suite=suite_name is not None)
    evaluation = "inductive" if inductive else "transductive"
    suite = load_suite(suite_name, get_manager()) if suite_name else None
    records = cell_records(load_runs(runs), evaluation)
    if check or output or (as_json and suite is None):
        require_runs(runs, records)
    chosen = _parse_scores(scores, records) if scores else None
    if suite is None:
        from gcdbench.reporting.tables.plain import plain_table

        if not records:
            say(f"No runs in '{runs}' yet; 'gcdbench run --method kmeans --dataset phantom' makes one.")
            return
        table = plain_table(_with(records, preset, protocol), get_manager(), chosen or ("all", "old", "new"))
    else:
        from gcdbench.reporting.tables.bootstrap import RunBootstrap
        from gcdbench.reporting.tables.suite_table import suite_table

        table = suite_table(
            suite,
            records,
            get_manager(),
            preset=preset,
            seeds=parse_seeds(seeds) if seeds else None,
            protocol=protocol,
            scores=chosen,
            evaluation=evaluation,
            bootstrap=RunBootstrap(evaluation),
            against=against,
        )
        if explain:
            _explain(table, suite, explain, records)
            return
    suffix = (check or output or Path("x.txt")).suffix
    name = format_name or ("json" if as_json else SUFFIXES.get(suffix, "text"))
    text = render(table, name, layout)
    if check is not None:
        _check(text, check)
    elif output is not None:
        from gcdbench.core.files import write_text

        write_text(output, text)
        say(f"Wrote {output}")
    elif name == "text" and sys.stdout.isatty():
        import shutil

        from gcdbench.reporting.tables.render import render_text
        from gcdbench.reporting.tables.terminal import fit

        # Its own colours; its cells were made printable one by one.
        click.echo(render_text(fit(table, layout, shutil.get_terminal_size().columns), colours=True), nl=False)
    else:
        say(text, nl=False)


def _refuse_contradictions(given: Mapping[str, object], *, of_suite: bool) -> None:
    """Refuse options that would be ignored."""
    from gcdbench.core.errors import ConfigError

    for name in ("explain", "against", "seeds"):
        if given[name] and not of_suite:
            raise ConfigError(f"--{name} needs a suite.", hint="'gcdbench status' lists all runs.")
    alone = {
        "explain": ("against", "check", "output", "format", "json"),
        "check": ("output",),
        "json": ("format",),
    }
    for name, others in alone.items():
        for other in others:
            if given[name] and given[other]:
                raise ConfigError(f"--{name} and --{other} do not go together: leave one of them out.")


def _parse_scores(text: str, records: Sequence[CellRecord]) -> tuple[str, ...]:
    from gcdbench.core.errors import UnknownName
    from gcdbench.plugins.manager import get_manager
    from gcdbench.reporting.scores import score_catalogue

    names = tuple(filter(None, map(str.strip, text.split(","))))
    known = {*score_catalogue(get_manager()), *(key for record in records for key in record.scores)}
    for name in names:
        if name not in known:
            raise UnknownName("score", name, known)
    return names


def _with(records: Sequence[CellRecord], preset: str | None, protocol: str | None) -> list[CellRecord]:
    """The records of a preset and a protocol, of which there must be some."""
    from gcdbench.core.errors import UnknownName

    found = [record for record in records if preset in (None, record.preset)]
    if not found:
        raise UnknownName("run with a preset", str(preset), {record.preset for record in records})
    kept = [record for record in found if protocol in (None, record.protocol)]
    if not kept:
        raise UnknownName("run with a protocol", str(protocol), {record.protocol for record in found})
    return kept


def _check(text: str, file: Path) -> None:
    import difflib

    from gcdbench.core.errors import ConfigError

    try:
        before = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"'{file}' cannot be read: {error.strerror or error}.") from error
    if before == text:
        say(f"{file} follows from the runs.")
        return
    difference = difflib.unified_diff(before.splitlines(), text.splitlines(), str(file), "from the runs", lineterm="")
    for line in list(difference)[:40]:
        say(line)
    say(f"{file} does not follow from the runs; write it again with --output {file}.", err=True)
    raise SystemExit(1)


def _explain(table: ResultTable, suite: Suite, cell: tuple[str, str], records: list[CellRecord]) -> None:
    from gcdbench.reporting.spent import SPENT
    from gcdbench.reporting.tables.suite_table import find_cell

    row, column = find_cell(table, *cell, suite)
    by_id = {record.run_id: record for record in records}
    entry = table.entry(row, column, table.scores[0])
    say(f"{row} on {column}: {entry.n} finished run(s)")
    for run_id in entry.runs:
        record = by_id[run_id]
        shown = [key for key in table.scores if key in record.scores and key not in SPENT]
        scores = "  ".join(f"{key} {record.scores[key]:.2f}" for key in shown)
        took = "" if record.seconds is None else f"  {record.seconds:.0f} s"
        say(f"  seed {record.seed}  {scores}{took}  {record.path}")
    for score in table.scores:
        found = table.entry(row, column, score)
        if found.mean is not None and score not in SPENT:
            spread = "" if found.sd is None else f" ± {found.sd:.2f}"
            reported = "" if found.reported is None else f", reported {found.reported} ({found.difference:+.2f})"
            bold = ", bold" if found.bold else ""
            say(f"  {score}: {found.mean:.2f}{spread} (n = {found.n}){reported}{bold}")
    if entry.missing:
        say(f"  no finished run for seed(s) {', '.join(map(str, entry.missing))}")
    if entry.failed:
        say(f"  {entry.failed} failed run(s)")
