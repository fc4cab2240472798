"""The state of an unfinished run on disk: sealed, written whole or not at all, two generations deep."""

from __future__ import annotations

import io
import os
import pickle
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from gcdbench.core.cache_folders import remove
from gcdbench.core.errors import TrainingError
from gcdbench.core.files import sync, write_bytes
from gcdbench.core.sealed import DamagedError, read_sealed, seal_bytes
from gcdbench.core.work import Note, log_note

FORMAT = 2
LATEST = "latest.pt"
PREVIOUS = "previous.pt"
FAILED = "failed.pt"
FRESH = ".fresh.pt"
DAMAGED = "damaged.pt"

State = dict[str, Any]


def write_state(path: Path, state: State) -> None:
    """Replace ``path`` by ``state``, whole or not at all; ``torch.load`` reads it, too."""
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, **state}, buffer)
    write_bytes(path, seal_bytes(buffer.getbuffer()))


def read_state(path: Path) -> State:
    """Read what :func:`write_state` wrote, verified; only tensors and plain values are accepted."""
    try:
        content = read_sealed(path)
        state: State = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except (DamagedError, OSError, EOFError, RuntimeError, ValueError, pickle.UnpicklingError) as error:
        raise TrainingError(
            f"The checkpoint {path} cannot be read: {error}.", hint="delete it to start over"
        ) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise TrainingError(f"The checkpoint {path} has another format.", hint="delete it to start over")
    return state


def load_latest(directory: Path, note: Note = log_note) -> State | None:
    """The newest intact checkpoint of a directory; None when there is none, and training starts over.

    A damaged one is reported and set aside, so that it never replaces the one before it, which is used instead.
    """
    for name in (LATEST, PREVIOUS):
        path = directory / name
        if not path.exists():
            continue
        try:
            return read_state(path)
        except TrainingError as error:
            _set_aside(path)
            older = name == LATEST and (directory / PREVIOUS).exists()
            then = "the one before it is used" if older else "training starts over"
            note(f"{error.message.removesuffix('.')}; {then}.")
    return None


def _set_aside(path: Path) -> None:
    aside = path.with_name(DAMAGED)
    remove(aside)
    with suppress(FileNotFoundError):  # another rank of this run was faster
        os.rename(path, aside)


def save_latest(directory: Path, state: State) -> None:
    """Write a new checkpoint; the one before it stays until the new one is safe."""
    for leftover in directory.glob(".*.part"):
        # Of a process that was killed while it was writing.
        remove(leftover)
    latest, previous, fresh = directory / LATEST, directory / PREVIOUS, directory / FRESH
    for path in (latest, previous, fresh):
        if path.is_dir():  # nothing of ours
            remove(path)
    write_state(fresh, state)
    if latest.exists():
        os.replace(latest, previous)
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
