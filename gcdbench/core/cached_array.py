"""Arrays that are expensive to make: built once under a lock, kept on the disk, memory-mapped by everyone.

``<folder>/<key>/`` holds ``data.npy`` and ``meta.json``; the key is a hash of everything that shapes the content.
A directory appears under its name only when it is complete, so a killed build leaves nothing that could be mistaken
for a result, and the directory can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import DTypeLike, NDArray

from gcdbench.core.cache_folders import map_array, new_folder, touch
from gcdbench.core.disk_space import reserve, room_for

DATA, META = "data.npy", "meta.json"
FORMAT = 2


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What an array is and how it is made.

    identity: everything that shapes the content, as plain JSON values; fill: writes the content into the array it is
    given; announce: is told the size in bytes before the work starts; wait: is told when another process is at it.
    """

    title: str
    identity: Mapping[str, Any]
    shape: tuple[int, ...]
    dtype: DTypeLike
    fill: Callable[[NDArray[Any]], None]
    announce: Callable[[int], None] = lambda size: None
    wait: Callable[[], None] = lambda: None

    @property
    def key(self) -> str:
        """Name of the directory."""
        form = {"format": FORMAT, "shape": self.shape, "dtype": np.dtype(self.dtype).str}
        text = json.dumps({**form, **self.identity}, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    @property
    def size(self) -> int:
        """Bytes of the content."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


def open_array(folder: Path | None, recipe: Recipe) -> NDArray[Any]:
    """The recipe's array, read-only and mapped from ``folder``; made first where it is not there.

    Without a folder it is made in memory and not kept.
    """
    if folder is None:
        array = np.empty(recipe.shape, dtype=recipe.dtype)
        recipe.fill(array)
        return array
    home = folder / recipe.key
    while True:  # somebody may clear the cache between building and opening
        touch(home / META)
        mapped = _open(home, recipe)
        if mapped is not None:
            return mapped
        _build_once(home, recipe)


def _open(home: Path, recipe: Recipe) -> NDArray[Any] | None:
    return map_array(home / DATA, recipe.shape, recipe.dtype) if (home / META).is_file() else None


def _build_once(home: Path, recipe: Recipe) -> None:
    """Build, or wait for the process that does."""
    home.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(home.with_name(f"{recipe.key}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        recipe.wait()
        lock.acquire()
    try:
        if _open(home, recipe) is None:
            _build(home, recipe)
    finally:
        lock.release()


def _build(home: Path, recipe: Recipe) -> None:
    # Whoever holds the lock is the only builder.
    with new_folder(home) as unfinished, room_for(home.parent, recipe.size, f"The {recipe.title}"):
        recipe.announce(recipe.size)
        array = np.lib.format.open_memmap(
            unfinished / DATA, mode="w+", dtype=np.dtype(recipe.dtype), shape=recipe.shape
        )
        reserve(unfinished / DATA)
        recipe.fill(array)
        array.flush()
        del array
        meta = {"format": FORMAT, "title": recipe.title, "bytes": recipe.size, "identity": dict(recipe.identity)}
        (unfinished / META).write_text(json.dumps(meta, indent=1, sort_keys=True), encoding="utf-8")
