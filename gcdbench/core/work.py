"""How much this process may do at once, and how work reports its progress and what happened on the way."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""``progress(stage, done, total)``; ``stage`` is a short phrase for people."""

Note = Callable[[str], None]
"""``note(sentence)``: something the user should know that stops nothing."""


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def log_note(sentence: str) -> None:
    """The note where nobody listens, for example in worker processes: a line on standard error."""
    logging.getLogger("gcdbench").warning(sentence)
