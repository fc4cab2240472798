"""What is known of this machine: its processor, and small measurements of it that are remembered in the cache.

Nothing remembered here may change a result beyond its last bits; what was remembered wrongly, or not at all, is
measured again.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from gcdbench.core.cache_folders import discard
from gcdbench.core.errors import GCDBenchError
from gcdbench.core.files import write_bytes
from gcdbench.core.identity import digest
from gcdbench.core.sealed import DamagedError, read_sealed, seal_bytes

FOLDER = "speed"
"""Where in the cache measurements are."""


def cpu_model() -> str:
    """Name of the processor as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def memory_file(cache: Path, about: Mapping[str, Any]) -> Path:
    """Where measurements of this processor are remembered; ``about``: what else they depend on."""
    return cache / FOLDER / f"{digest({'cpu': cpu_model(), **about})[:24]}.json"


def recall(file: Path) -> dict[str, Any]:
    """What was remembered there; nothing where that is damaged or was never written."""
    try:
        found = json.loads(read_sealed(file))
    except (OSError, DamagedError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def remember(file: Path, values: Mapping[str, Any]) -> None:
    """Write ``values``; in a cache that cannot be written nothing is remembered, and whoever needs it will say so."""
    with suppress(GCDBenchError, OSError):
        discard(file)
        write_bytes(file, seal_bytes(json.dumps(values).encode()))
