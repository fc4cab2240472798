"""The options that say where and how a run is executed, which a verb receives as one ``Placement``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from gcdbench.cli.options import observe_option, runs_option

_OPTIONS: tuple[Callable[..., Any], ...] = (
    click.option("--device", default=None, help="cpu or cuda (default: cuda if available)."),
    click.option("--workers", type=click.IntRange(min=0), help="Processes for decoding; changes no result."),
    click.option("--threads", type=click.IntRange(min=1), help="Threads for computing."),
    click.option("--disk-budget", metavar="SIZE", help="Space for stored views when views=auto decides, e.g. 6GB."),
    click.option("--resume/--no-resume", default=True, show_default=True, help="Continue an interrupted training."),
    click.option("--force", is_flag=True, help="Train again even if the run is done."),
    click.option("--accept-data-issues", is_flag=True, help="Run on data with known problems, and record them."),
    observe_option,
    runs_option,
)


def placement_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add these options to a verb, which is called with ``placement`` in place of them; ``--data-root`` joins them."""

    @wraps(function)
    def placed(**given: Any) -> Any:
        from dataclasses import fields

        from gcdbench.runs.placement import Placement

        placement = {field.name: given.pop(field.name) for field in fields(Placement) if field.name in given}
        placement["device"] = placement["device"] or _default_device()
        return function(placement=Placement(**placement), **given)

    for option in reversed(_OPTIONS):
        placed = option(placed)
    return placed


def _default_device() -> str:
    from gcdbench.runs.plan import detect_gpu

    return "cuda" if detect_gpu() else "cpu"
