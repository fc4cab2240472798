"""The one way in which commands speak: whatever text holds, it cannot control the terminal."""

from __future__ import annotations

import click

from gcdbench.core.printable import printable


def say(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text; control characters in it, which a run or an archive may have brought, are shown as text."""
    click.echo(printable(text), err=err, nl=nl)


def say_styled(text: str, *, fg: str | None = None, bold: bool | None = None, err: bool = False) -> None:
    """The same in a colour or in bold, where the terminal has them."""
    click.secho(printable(text), fg=fg, bold=bold, err=err)
