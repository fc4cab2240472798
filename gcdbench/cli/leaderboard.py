"""``gcdbench leaderboard``: static pages from exported runs."""

from __future__ import annotations

from pathlib import Path

import click

from gcdbench.cli.echo import say


@click.command("leaderboard")
@click.argument("sources", nargs=-1, required=True, metavar="DIR|ARCHIVE...", type=click.Path(path_type=Path))
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, file_okay=False), default=Path("site"), show_default=True
)
@click.option("--title", default="gcdbench leaderboard", show_default=True)
@click.option(
    "--max-gib", type=click.FloatRange(min=0.001), default=8.0, show_default=True, help="Largest unpacked archive."
)
def command(sources: tuple[Path, ...], output: Path, title: str, max_gib: float) -> None:
    """Make pages from archives of 'gcdbench export': one table per dataset and protocol, one card per run.

    DIR stands for every .zip file in it. Each archive is checked (names, sizes, hashes, schema), and its scores are
    computed again from its predictions. An archive in which anything is wrong is refused with all its runs and named;
    the others are shown, and the command ends with an error.
    """
    from gcdbench.plugins.manager import get_manager
    from gcdbench.reporting.leaderboard.collect import collect, find_archives
    from gcdbench.reporting.leaderboard.site import write_site

    manager = get_manager()
    collected = collect(find_archives(sources), manager, int(max_gib * 2**30))
    pages = write_site(collected, output, manager, title)
    for note in collected.notes:
        say(note)
    for archive in collected.refused:
        say(f"refused: {archive.path}: {archive.reason}", err=True)
    say(
        f"Wrote {output / 'index.html'}: {len(collected.runs)} runs of {collected.archives} archives on {pages} pages; "
        f"{len(collected.refused)} archives refused."
    )
    if collected.refused:
        raise SystemExit(1)
