"""What an observer is: somebody who is told what happens in one run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Observer:
    """Told what happens in one run; override what you want to hear.

    One is made for each run, with the run's directory and, where the user wrote ``name:argument``, the argument.
    ``run`` is the run's record. Whatever an observer raises is written to the run's events; it is told nothing more,
    and the run continues.
    """

    def __init__(self, directory: Path, *, argument: str | None = None) -> None:
        self.directory = directory
        self.argument = argument

    def run_started(self, run: Mapping[str, Any]) -> None:
        """The run has begun."""

    def run_event(self, run: Mapping[str, Any], event: Mapping[str, Any]) -> None:
        """The run has written an event; :func:`gcdbench.api.figures_of_event` has the figures of an epoch."""

    def run_finished(self, run: Mapping[str, Any], scores: Mapping[str, Any]) -> None:
        """The run has ended and was scored; :func:`gcdbench.api.figures_of_scores` has the figures."""

    def run_failed(self, run: Mapping[str, Any], error: BaseException) -> None:
        """The run has failed."""
