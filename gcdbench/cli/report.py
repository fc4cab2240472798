"""``gcdbench report``: one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from gcdbench.cli.echo import say
from gcdbench.cli.options import require_runs, runs_option


@click.command("report")
@click.argument("suite_names", nargs=-1, metavar="[SUITE]...")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), default=Path("report.html"), show_default=True
)
@click.option("--title", default="gcdbench report", show_default=True)
@click.option("--preset", help="Preset of the suites' runs (default: each suite's first preset that has runs).")
@click.option(
    "--pictures",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("explain"),
    show_default=True,
    help="Folder with the pictures of 'gcdbench explain', one sub-folder per run.",
)
@click.option("--cards", type=click.IntRange(min=0), default=200, show_default=True, help="Most run cards.")
@runs_option
def command(
    suite_names: tuple[str, ...], output: Path, title: str, preset: str | None, pictures: Path, cards: int, runs: Path
) -> None:
    """Write a report of all runs: tables, figures, error decomposition, provenance, what failed or is missing.

    Without SUITE, every installed suite of which at least two rows have a run is shown. The file opens offline and
    loads nothing.
    """
    from gcdbench.core.disk_space import format_bytes
    from gcdbench.core.errors import UnknownName
    from gcdbench.core.files import write_text
    from gcdbench.plugins.manager import get_manager
    from gcdbench.reporting.report.build import build_report
    from gcdbench.reporting.suites.read import load_suite
    from gcdbench.runs.index import load_runs

    manager = get_manager()
    suites = [load_suite(name, manager) for name in (suite_names or manager.names("suites"))]
    presets = {name for suite in suites for name in suite.presets}
    if preset is not None and preset not in presets:
        raise UnknownName("preset in these suites", preset, presets)
    require_runs(runs, load_runs(runs))
    text = build_report(
        runs,
        suites,
        manager,
        title=title,
        preset=preset,
        pictures=pictures,
        most_cards=cards,
        fewest_rows=1 if suite_names else 2,
    )
    write_text(output, text)
    say(f"Wrote {output} ({format_bytes(len(text.encode()))})")
