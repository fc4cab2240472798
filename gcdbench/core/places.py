"""Where gcdbench keeps what it makes: the cache folder and the user's data folder."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from gcdbench.core.errors import ConfigError


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


def user_data_dir() -> Path:
    """Folder that ``gcdbench data fetch`` downloads to unless told otherwise."""
    return Path(platformdirs.user_data_dir("gcdbench"))
