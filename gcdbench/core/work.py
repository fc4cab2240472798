"""How much this process may do at once, and how work says how far it is."""

from __future__ import annotations

import os
from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""``progress(stage, done, total)``; ``stage`` is a short phrase for people."""


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
