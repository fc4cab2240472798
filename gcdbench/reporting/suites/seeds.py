"""Seeds as people write them: ``0-4``, ``0,1,2`` or ``3``."""

from __future__ import annotations

import re

from gcdbench.core.errors import ConfigError


def parse_seeds(text: str) -> tuple[int, ...]:
    """The seeds that ``text`` lists, in its order, each once."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if not match:
            raise ConfigError(f"'{text}' is not a list of seeds.", hint="Examples: 0-4 or 0,1,2.")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first > 10_000:
            raise ConfigError(f"'{part.strip()}' is not a range of seeds.", hint="Examples: 0-4 or 0,1,2.")
        seeds += range(first, last + 1)
    return tuple(dict.fromkeys(seeds))
