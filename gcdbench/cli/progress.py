"""Progress on a terminal: a live bar; elsewhere: plain lines, few and complete."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from gcdbench.cli.echo import say
from gcdbench.core.printable import one_line, printable

if TYPE_CHECKING:
    from gcdbench.runs.events import EpochEnd, Event, StepProgress

PLAIN_SECONDS = 10.0
LEFT_WIDTH = len("59 min left")


class ProgressDisplay:
    """Listens to a run's events and shows them; use as a context manager.

    quiet: no progress. What a run has to say about its data, caches and kernels is no progress: it is shown all the
    same, unless ``notes`` is False.
    """

    def __init__(self, *, quiet: bool = False, notes: bool = True) -> None:
        import sys

        self._quiet = quiet
        self._notes = notes
        self._live = sys.stderr.isatty() and not quiet
        self._tasks: dict[str, Any] = {}
        self._last_plain: dict[str, float] = {}
        self._begun: dict[str, tuple[float, int]] = {}
        self._bar: Any = None

    def __enter__(self) -> ProgressDisplay:
        if self._live:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
            from rich.table import Column

            # A narrow window cuts the last column only, and that from its end, where the losses are.
            self._bar = Progress(
                TextColumn("{task.description}", table_column=Column(no_wrap=True)),
                BarColumn(bar_width=20, table_column=Column(min_width=20)),
                TaskProgressColumn(table_column=Column(no_wrap=True, min_width=4)),
                TextColumn("{task.fields[left]}", table_column=Column(no_wrap=True, min_width=LEFT_WIDTH)),
                TextColumn("{task.fields[detail]}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
                console=Console(stderr=True),
                transient=False,
                expand=True,
            )
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        from gcdbench.runs.events import EpochEnd, Note, Progress, StepProgress

        if isinstance(event, Note):
            if self._notes:
                self._line(event.message)
        elif self._quiet:
            return
        elif isinstance(event, StepProgress):
            self._training(event, event.epoch + event.step / max(event.steps, 1))
        elif isinstance(event, EpochEnd):
            self._training(event, event.epoch + 1)
        elif isinstance(event, Progress):
            self._progress(event.task, event.done, event.total, event.detail)

    def _progress(self, task: str, done: int, total: int, detail: str, seconds_left: float | None = None) -> None:
        """One estimate of the time left: the event's own, or else by the speed so far."""
        now = time.monotonic()
        if seconds_left is None:
            begun, first_done = self._begun.setdefault(task, (now, done))
            if done > first_done:
                seconds_left = (now - begun) * (total - done) / (done - first_done)
        left = "" if seconds_left is None or done >= total else f"{duration(seconds_left)} left"
        if self._bar is not None:
            task, detail = bar_text(task), bar_text(detail)
            if task not in self._tasks:
                self._tasks[task] = self._bar.add_task(task, total=total, detail=detail, left=left)
            self._bar.update(self._tasks[task], completed=done, total=total, detail=detail, left=left)
            return
        first = task not in self._last_plain
        if first or done >= total or now - self._last_plain[task] >= PLAIN_SECONDS:
            self._last_plain[task] = now
            say(f"{task}: {done}/{total}  {'  '.join(filter(None, (left, detail)))}".rstrip(), err=True)

    def _training(self, event: StepProgress | EpochEnd, done: float) -> None:
        """Progress in percent of the run, with the epoch, the losses, images/s and the time left."""
        losses = " ".join(f"{name} {value:.3f}" for name, value in event.losses.items())
        epoch = f"epoch {min(int(done) + 1, event.epochs)}/{event.epochs}"
        detail = f"{epoch}  {event.images_per_s:.0f} images/s  {losses}"
        self._progress("training, %", int(100 * done / max(event.epochs, 1)), 100, detail, event.eta_s)

    def _line(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(printable(text), markup=False)
        else:
            say(text, err=True)


def duration(seconds: float) -> str:
    """``40 s``, ``12 min`` or ``3.5 h``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def bar_text(text: str) -> str:
    """Without control characters, and without what the progress bar would take for markup."""
    from rich.markup import escape

    return escape(one_line(text))
