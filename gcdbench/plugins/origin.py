"""Which file and line of a plugin an error came from: where its author looks first."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path


def package_folders(module_name: str) -> tuple[Path, ...]:
    """Where the top-level package of a module is (or the file of a module that is not a package); imports nothing."""
    top = module_name.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):  # a module that was put into sys.modules by hand has no specification
        spec = None
    if spec is not None and spec.submodule_search_locations:
        return tuple(map(Path, spec.submodule_search_locations))
    file = spec.origin if spec is not None else getattr(sys.modules.get(top), "__file__", None)
    return (Path(file),) if file else ()


def place_in(error: BaseException, roots: Iterable[Path]) -> str:
    """``package/file.py, line 7``: the innermost line below ``roots`` (folders or files) that led to ``error``.

    Empty where none of them did. Names no folder above a root: the text may be stored with a run and sent to others.
    """
    seen = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:  # the file that could not be read has no frame
        seen.append((error.filename, error.lineno))
    for file, line in reversed(seen):
        for root in roots:
            if Path(file).is_relative_to(root):
                return f"{Path(file).relative_to(root.parent).as_posix()}, line {line}"
    return ""


def said(error: BaseException, roots: Iterable[Path]) -> str:
    """One line on an error: its kind, its message, and where in a plugin it arose."""
    place = place_in(error, roots)
    message = str(error)
    if isinstance(error, SyntaxError) and place:
        message = error.msg  # without Python's own "(file.py, line 7)"
    return f"{type(error).__name__}: {message}" + (f" ({place})" if place else "")
