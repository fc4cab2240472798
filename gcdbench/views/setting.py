"""The setting ``views``: what it may say. Apart from the bank, so that a plan is checked without importing torch."""

from __future__ import annotations

import re

from gcdbench.core.errors import ConfigError

MAX_VIEWS = 1024
"""Far more than helps, and few enough for the size of a bank to be a number."""


def parse_views(views: str) -> int | None:
    """Number of stored views of ``"bank:V"``; None for ``"online"``."""
    if views == "online":
        return None
    match = re.fullmatch(r"bank:([0-9]{1,4})", views)
    if match is None or not 2 <= int(match[1]) <= MAX_VIEWS:
        raise ConfigError(
            f"views must be 'online' or 'bank:V' with V from 2 to {MAX_VIEWS}, not '{views}'.",
            hint="For example bank:16.",
        )
    return int(match[1])
