"""The code of a method as a digest: a training that was begun with other code must not be continued."""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path

from gcdbench.models.weights import file_sha256

FOREIGN = ("builtins", "abc", "typing", "torch")


def code_digest(method: type) -> str:
    """sha256 of the files that define the class and its bases, with the files next to them in a plugin's package."""
    files = {file for base in method.__mro__ for file in _files(base)}
    # By content, not by path: the same packages are elsewhere on another machine.
    return hashlib.sha256("".join(sorted(map(file_sha256, files))).encode()).hexdigest()


def _files(base: type) -> list[Path]:
    package, _, inside = base.__module__.partition(".")
    if package in FOREIGN:
        return []
    try:
        source = inspect.getsourcefile(base)
    except TypeError:  # written in a console
        source = None
    file = Path(source) if source else None
    if file is None or not file.is_file():
        return []
    return sorted(file.parent.glob("*.py")) if inside and package != "gcdbench" else [file]
