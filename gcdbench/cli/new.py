"""``gcdbench new``: a plugin package to start from."""

from __future__ import annotations

from pathlib import Path

import click

from gcdbench.cli.echo import say

KINDS = ("method", "dataset", "metric", "backbone", "executor")


@click.command("new")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.option("--into", type=click.Path(path_type=Path), help="Folder to write to (default: NAME in this folder).")
def command(kind: str, name: str, into: Path | None) -> None:
    """Write a package with a working KIND called NAME, and tests that pass."""
    from gcdbench.testing.scaffold import make_package

    folder = into or Path(name)
    for file in make_package(kind, name, folder):
        say(f"  {file}")
    say(f"Next: pip install -e '{folder}[test]' && python -m pytest {folder}")
