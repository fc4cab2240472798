"""Progress on a terminal: a live bar; elsewhere: plain lines, few and complete."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import click

PLAIN_SECONDS = 10.0


class ProgressDisplay:
    """Listens to a run's events and shows them; use as a context manager."""

    def __init__(self, *, quiet: bool = False) -> None:
        import sys

        self._quiet = quiet
        self._live = sys.stderr.isatty() and not quiet
        self._tasks: dict[str, Any] = {}
        self._last_plain: dict[str, float] = {}
        self._bar: Any = None

    def __enter__(self) -> ProgressDisplay:
        if self._live:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[detail]}"),
                console=Console(stderr=True),
                transient=False,
            )
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Show one event."""
        if self._quiet:
            return
        kind = event.get("type")
        if "epoch" in event and kind in ("progress", "epoch"):
            self._training(event)
        elif kind == "progress":
            self._progress(str(event["task"]), int(event["done"]), int(event["total"]), str(event.get("detail", "")))
        elif kind == "note":
            self._line(str(event["message"]))

    def _progress(self, task: str, done: int, total: int, detail: str) -> None:
        if self._bar is not None:
            if task not in self._tasks:
                self._tasks[task] = self._bar.add_task(task, total=total, detail=detail)
            self._bar.update(self._tasks[task], completed=done, total=total, detail=detail)
            return
        now = time.monotonic()
        first = task not in self._last_plain
        if first or done >= total or now - self._last_plain[task] >= PLAIN_SECONDS:
            self._last_plain[task] = now
            click.echo(f"{task}: {done}/{total} {detail}".rstrip(), err=True)

    def _training(self, event: Mapping[str, Any]) -> None:
        """Progress in percent of the run, with the epoch, the losses, images/s and the time left."""
        epochs = int(event["epochs"])
        done = event["epoch"] + (event["step"] / event["steps"] if event["type"] == "progress" else 1)
        losses = " ".join(f"{name} {value:.3f}" for name, value in event["losses"].items())
        detail = (
            f"epoch {min(int(done) + 1, epochs)}/{epochs}  {losses}  "
            f"{event['images_per_s']:.0f} images/s  {event['eta_s']:.0f} s left"
        )
        self._progress("training, %", int(100 * done / epochs), 100, detail)

    def _line(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(text)
        else:
            click.echo(text, err=True)
