"""What a run tells about itself: mean losses, speed, and how long its steps took."""

from __future__ import annotations

import time
from typing import Any

PROGRESS_SECONDS = 0.5


class Meter:
    """Mean losses of the epoch, the speed of this process, and its seconds within the epoch's steps."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        self.step_seconds = 0.0
        self.restart()

    def restart(self) -> None:
        """Measure speed from now on."""
        self._begin = self._shown = time.monotonic()
        self._images = 0

    def start_epoch(self) -> None:
        """Forget the losses and the time of the epoch before."""
        self._sums.clear()
        self._counts.clear()
        self.step_seconds = 0.0

    def add(self, values: dict[str, float], images: int, seconds: float) -> None:
        """Take in one step."""
        self._images += images
        self.step_seconds += seconds
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
            self._counts[name] = self._counts.get(name, 0) + 1

    def means(self) -> dict[str, float]:
        """Mean of each loss over the steps of the epoch that had it."""
        return {name: total / self._counts[name] for name, total in self._sums.items()}

    def speed(self) -> float:
        """Images per second."""
        return self._images / max(time.monotonic() - self._begin, 1e-9)

    def progress_due(self) -> bool:
        """True at most every PROGRESS_SECONDS."""
        now = time.monotonic()
        if now - self._shown < PROGRESS_SECONDS:
            return False
        self._shown = now
        return True

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"sums": dict(self._sums), "counts": dict(self._counts)}

    def load_state(self, state: dict[str, Any]) -> None:
        """From a checkpoint."""
        self._sums, self._counts = dict(state["sums"]), dict(state["counts"])
