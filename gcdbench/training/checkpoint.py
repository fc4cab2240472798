"""The state of an unfinished run on disk: written whole or not at all, two generations deep."""

from __future__ import annotations

import io
import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from gcdbench.core.errors import TrainingError
from gcdbench.core.files import sync, write_bytes

FORMAT = 1
LATEST = "latest.pt"
PREVIOUS = "previous.pt"
FAILED = "failed.pt"
FRESH = ".fresh.pt"

State = dict[str, Any]


def write_state(path: Path, state: State) -> None:
    """Replace ``path`` by ``state``, whole or not at all."""
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, **state}, buffer)
    write_bytes(path, buffer.getvalue())


def read_state(path: Path) -> State:
    """Read what :func:`write_state` wrote; only tensors and plain values are accepted."""
    try:
        state: State = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, EOFError, RuntimeError, ValueError, pickle.UnpicklingError) as error:
        raise TrainingError(
            f"The checkpoint {path} cannot be read: {error}.", hint="delete it to start over"
        ) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise TrainingError(f"The checkpoint {path} has another format.", hint="delete it to start over")
    return state


def load_latest(directory: Path) -> State | None:
    """The newest readable checkpoint of a directory; None when there is none.

    A crash of the machine may leave the newest file damaged: then the one before it serves.
    """
    failure: TrainingError | None = None
    for name in (LATEST, PREVIOUS):
        if (directory / name).exists():
            try:
                return read_state(directory / name)
            except TrainingError as error:
                failure = error
    if failure is not None:
        raise failure
    return None


def save_latest(directory: Path, state: State) -> None:
    """Write a new checkpoint; the one before it stays until the new one is safe."""
    for leftover in directory.glob(".*.part"):
        # Of a process that was killed while it was writing.
        leftover.unlink(missing_ok=True)
    latest, fresh = directory / LATEST, directory / FRESH
    write_state(fresh, state)
    if latest.exists():
        os.replace(latest, directory / PREVIOUS)
    os.replace(fresh, latest)
    sync(directory)


class Clock:
    """Says when a checkpoint is due: every ``seconds``, but not so often that writing takes over 3 % of the time.

    With ``seconds`` of 0 it is due after every step, whatever that costs.
    """

    def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._now = now
        self._last = now()
        self._cost = 0.0

    def due(self) -> bool:
        """Whether enough time has passed since the last one."""
        if self.seconds <= 0:
            return True
        return self._now() - self._last >= max(self.seconds, 30.0 * self._cost)

    def time(self, write: Callable[[], None]) -> None:
        """Run ``write`` and remember how long it took."""
        start = self._now()
        write()
        self._last = self._now()
        self._cost = self._last - start
