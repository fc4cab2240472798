"""Live progress of many runs: one bar for the whole, one line for each run under way."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from gcdbench.cli.echo import say
from gcdbench.cli.progress import bar_text, duration
from gcdbench.core.printable import printable

if TYPE_CHECKING:
    from gcdbench.runs.events import Event


class SweepDisplay:
    """Listens to events of jobs from several threads; plain lines where there is no terminal.

    Counts what it hears of: runs ``finished`` and ``failed``, and ``step_seconds``, all runs' time in training steps.
    """

    def __init__(self, names: Mapping[int, str], *, quiet: bool = False) -> None:
        self._names = names
        self._quiet = quiet
        self._guard = threading.Lock()
        self._tasks: dict[int, Any] = {}
        self._started: set[int] = set()
        self._bar: Any = None
        self._whole: Any = None
        self.finished = 0
        self.failed = 0
        self.step_seconds = 0.0
        self._live = sys.stderr.isatty() and not quiet

    def __enter__(self) -> SweepDisplay:
        if self._live:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
            from rich.table import Column

            self._bar = Progress(
                TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
                BarColumn(bar_width=16, table_column=Column(min_width=16)),
                MofNCompleteColumn(table_column=Column(no_wrap=True, min_width=7)),
                TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=7)),
                TextColumn("{task.fields[detail]}", table_column=Column(no_wrap=True, min_width=21)),
                console=Console(stderr=True),
                expand=True,
            )
            self._whole = self._bar.add_task("[bold]all runs", total=len(self._names), detail="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Leave the terminal as it was."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def __call__(self, job: object, event: Event) -> None:
        """One event of one job."""
        from gcdbench.runs.events import EngineNote, EpochEnd, JobEnded

        with self._guard:
            key = id(job)
            if isinstance(event, EngineNote):
                self._line(event.message)
                return
            if key not in self._started:
                self._started.add(key)
                self._line(f"started  {self._names[key]}")
            if isinstance(event, JobEnded):
                self._end(key, event.error, event.reused)
                return
            if isinstance(event, EpochEnd):
                self.step_seconds += event.step_seconds
            self._advance(key, *_share_done(event))

    def _advance(self, key: int, task: str, done: float, total: float) -> None:
        if self._bar is None or not total:
            return
        if key not in self._tasks:
            self._tasks[key] = self._bar.add_task(bar_text(self._names[key]), total=total, detail=bar_text(task))
        self._bar.update(self._tasks[key], completed=done, total=total, detail=task)

    def _end(self, key: int, error: str, reused: bool) -> None:
        if error:
            self.failed += 1
        else:
            self.finished += 1
        if self._bar is not None:
            if key in self._tasks:
                self._bar.remove_task(self._tasks.pop(key))
            detail = f"{self.failed} failed" if self.failed else ""
            self._bar.update(self._whole, completed=self.finished + self.failed, detail=detail)
        word = "failed" if error else "reused" if reused else "done"
        count = f"({self.finished + self.failed}/{len(self._names)})"
        self._line(f"{word:<8} {self._names[key]} {count}" + (f": {error}" if error else ""))

    def _line(self, text: str) -> None:
        if self._quiet:
            return
        if self._bar is not None:
            self._bar.console.print(printable(text), highlight=False, markup=False)
        else:
            say(text, err=True)


def _share_done(event: Event) -> tuple[str, float, float]:
    """What a run is doing and how far it is; an event that tells neither shows nothing."""
    from gcdbench.runs.events import EpochEnd, Progress, StepProgress

    if isinstance(event, (StepProgress, EpochEnd)):
        within = event.step / max(1, event.steps) if isinstance(event, StepProgress) else 1
        return f"training, {duration(event.eta_s)} left", round(event.epoch + within, 1), event.epochs
    if isinstance(event, Progress):
        return event.task, event.done, event.total
    return "", 0, 0
