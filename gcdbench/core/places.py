"""Where gcdbench keeps what it makes: the cache folder and the user's data folder."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from gcdbench.core.disk_space import parse_size
from gcdbench.core.errors import ConfigError

DISK_BUDGET = 8 * 10**9
"""A constant, not a share of the free disk: the decision is part of a run's identity and must not change by itself."""


def cache_dir() -> Path:
    """Folder for image stores and view banks: ``GCDBENCH_CACHE``, else the user's cache directory."""
    chosen = os.environ.get("GCDBENCH_CACHE")
    if not chosen:
        return Path(platformdirs.user_cache_dir("gcdbench"))
    folder = Path(chosen).expanduser().absolute()
    for place in (folder, *folder.parents):
        if place.is_file():
            raise ConfigError(
                f"GCDBENCH_CACHE is '{folder}', but '{place}' is a file.",
                hint="Set it to a folder, which need not exist yet, or leave it out.",
            )
    return folder


def disk_budget() -> int:
    """Bytes that stored views may take where ``views = "auto"`` decides: ``GCDBENCH_DISK_BUDGET``, else 8 GB."""
    text = os.environ.get("GCDBENCH_DISK_BUDGET")
    return parse_size(text) if text else DISK_BUDGET


def user_data_dir() -> Path:
    """Folder that ``gcdbench data fetch`` downloads to unless told otherwise."""
    return Path(platformdirs.user_data_dir("gcdbench"))
