"""The one way in which commands speak: whatever a text is made of, it cannot steer the terminal."""

from __future__ import annotations

import click

from gcdbench.core.printable import printable


def say(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text; control characters in it, which a run or an archive may have brought, are shown as text."""
    click.echo(printable(text), err=err, nl=nl)
