"""Which package offers what is not installed here. For hints only: nothing is allowed or refused by it.

The directory of known plugins is a data file, ``plugins/directory.toml`` of the repository, so that a package is added
to it without a change of code, as a dataset is by its card.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path


def directory_file() -> Path:
    """The file: inside the installed package, or ``plugins/directory.toml`` of a source checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "_plugins" / "directory.toml"
    return installed if installed.is_file() else package.parent / "plugins" / "directory.toml"


@lru_cache(maxsize=1)
def known_packages() -> dict[str, dict[str, tuple[str, ...]]]:
    """Distribution -> kind -> names it offers; empty where the file is missing."""
    try:
        table = tomllib.loads(directory_file().read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError):  # one hint fewer is no reason to stop
        return {}
    return {package: {kind: tuple(names) for kind, names in offers.items()} for package, offers in table.items()}


def package_offering(kind: str, name: str) -> str | None:
    """The first known package that offers ``name``, a suite also by the part after ``study/``."""
    for package, offers in known_packages().items():
        if any(name in (offered, offered.rpartition("/")[2]) for offered in offers.get(kind, ())):
            return package
    return None
