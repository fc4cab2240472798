"""Find, build and load the C kernels, once per machine and user; without a C compiler nothing is lost but speed.

The library is stored in the cache directory under a name that holds the source, the compiler and the processor. It is
code, so it is loaded only from where nobody else can have put it: a cache that others can write, as a group may share
one, is passed over, and the process builds a library for itself in a folder of its own.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from gcdbench.core.errors import GCDBenchError
from gcdbench.core.places import cache_dir
from gcdbench.models.kernels.compiling import CannotCompile, build, find_compiler, intact, library_name, source_digest
from gcdbench.models.kernels.ownership import only_mine

SWITCH = "GCDBENCH_NATIVE"
"""Set this environment variable to 0 to do without compiled kernels."""


@dataclass(frozen=True, kw_only=True)
class KernelsInUse:
    """What makes views in this process.

    name: ``"native"`` for compiled kernels, ``"torch"`` for torch's operators; key: the same with a hash of sources
    and flags, part of the key of what is made with the kernels. note: a sentence for the user where something keeps
    the kernels from being used as they are meant to be; empty otherwise, and where the user switched them off.
    """

    name: Literal["native", "torch"]
    key: str
    note: str = ""


def kernels_in_use() -> KernelsInUse:
    """What this process makes views with, and why if that is not as usual."""
    return _obtain()[1]


def describe_kernels() -> str:
    """``"native"`` or ``"torch"``."""
    return kernels_in_use().name


def kernels_key() -> str:
    """Part of the key of what is made with the kernels: compiled and plain ones differ in the last bits."""
    return kernels_in_use().key


@lru_cache(maxsize=1)
def _untold() -> list[str]:
    note = kernels_in_use().note
    return [note] if note else []


def kernels_note() -> str | None:
    """The note of :func:`kernels_in_use`, for the first who asks in this process; None for all others."""
    untold = _untold()
    return untold.pop() if untold else None


def load_kernels() -> ctypes.CDLL | None:
    """The compiled kernels, or None where they are not available. Only this package may call it."""
    return _obtain()[0]


@lru_cache(maxsize=1)
def _obtain() -> tuple[ctypes.CDLL | None, KernelsInUse]:
    if os.environ.get(SWITCH) == "0":
        return None, KernelsInUse(name="torch", key="torch")
    try:
        library, note = _load()
    except (CannotCompile, OSError) as error:
        reason = str(error).rstrip(".")
        note = f"Views are made by torch's own operators, about ten times more slowly, because {reason}."
        return None, KernelsInUse(name="torch", key="torch", note=f"{note} ({SWITCH}=0 asks for that.)")
    return library, KernelsInUse(name="native", key=f"native-{source_digest()}", note=note)


def _load() -> tuple[ctypes.CDLL, str]:
    """The library of the cache, or one for this process alone and a note that says why."""
    command = find_compiler()
    name = library_name(command)
    folder = cache_dir() / "kernels"
    problem = _refuse(folder)
    if not problem:
        path = (folder / name).resolve()
        try:
            if not (intact(path) and only_mine(path)):
                build(command, path)
            return ctypes.CDLL(str(path)), ""
        except (OSError, GCDBenchError) as error:
            problem = f"'{folder}' cannot be used ({getattr(error, 'strerror', None) or error})"
    # mkdtemp's folders are for their user alone. Once loaded a library needs its file no longer.
    with tempfile.TemporaryDirectory(prefix="gcdbench-kernels-") as private:
        build(command, Path(private) / name)
        library = ctypes.CDLL(str(Path(private) / name))
    return library, f"The kernels were compiled for this process alone, because {problem}."


def _refuse(folder: Path) -> str:
    """Why a folder cannot hold compiled code; empty where it can. It is made where it is missing."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        return f"'{folder}' cannot be made ({error.strerror or error})"
    return "" if only_mine(folder) else f"users other than its owner can write to '{folder}' or a folder above it"
