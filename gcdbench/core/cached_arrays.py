"""Arrays that are expensive to make: built once under a lock, sealed, kept on the disk, memory-mapped by everyone.

``<cache>/<kind>/<key>/`` holds one ``<name>.npy`` for each array and ``meta.json``, which tells people what it is; the
key is a hash of everything that shapes the content. A file appears under its name only when it is complete, so a killed
build leaves nothing that could be mistaken for a result, and what it had finished stays. Every file is verified when it
is opened (:mod:`gcdbench.core.sealed`); a damaged one is made again. Everything can be deleted at any time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.cache_folders import META, UNFINISHED, changing, discard, only_one, remove, touch
from gcdbench.core.disk_space import reserve, room_for
from gcdbench.core.files import sync, write_bytes
from gcdbench.core.sealed import DamagedError, seal, seal_size, verify
from gcdbench.core.work import Note, log_note

_HEADER = 128
"""Bytes that numpy's header takes, more or less."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """Shape and type of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Bytes of the content."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    @property
    def file_size(self) -> int:
        """Bytes that the sealed file takes."""
        return self.size + _HEADER + seal_size(self.size + _HEADER)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Arrays of one entry of the cache, and how they are made.

    kind, key: the entry's folder; forms: the arrays that are wanted now, by name (an entry may hold others);
    subject: the beginning of sentences about it ("The view bank"); title: what lists call it; about: more for people;
    fill: writes the content of the array of that name into the array it is given; begin: is told, before the work
    starts, which arrays will be made and how many bytes they take; waiting: is told when another process is at it;
    note: is told what was damaged.
    """

    kind: str
    key: str
    subject: str
    title: str
    forms: Mapping[str, Form]
    fill: Callable[[str, NDArray[Any]], None]
    about: Mapping[str, Any] = field(default_factory=dict)
    begin: Callable[[tuple[str, ...], int], None] = lambda names, size: None
    waiting: Callable[[], None] = lambda: None
    note: Note = log_note


def open_cached(cache: Path | None, recipe: Recipe) -> dict[str, NDArray[Any]]:
    """The recipe's arrays by name, verified, read-only and mapped from ``cache``; made first where they are not there.

    Without a cache they are made in memory and not kept.
    """
    if cache is None:
        return _in_memory(recipe)
    home = cache / recipe.kind / recipe.key
    touch(home / META)
    found, missing = _open_all(home, recipe, recipe.forms)
    for name, problem in missing.items():
        if problem:
            recipe.note(f"{recipe.subject} in {home} is damaged ({name}.npy: {problem}) and is made again.")
    while missing:  # more than once only where somebody clears the cache between building and opening
        with only_one(cache, f"{recipe.kind}-{recipe.key}", recipe.waiting):
            # Another process may have made them while this one waited.
            others, missing = _open_all(home, recipe, missing)
            if missing:
                _make(home, recipe, tuple(missing))
            made, missing = _map_all(home, recipe, missing)
            found |= others | made
    return {name: found[name] for name in recipe.forms}


def keep_only(cache: Path, recipe: Recipe, names: Collection[str]) -> None:
    """Delete the entry's other arrays. Whoever has mapped one of them keeps it until it is done with it."""
    home = cache / recipe.kind / recipe.key
    others = [file for file in home.glob("[!.]*.npy") if file.stem not in names]
    if others:
        with only_one(cache, f"{recipe.kind}-{recipe.key}", recipe.waiting), changing(cache):
            for file in others:
                discard(file)


def _in_memory(recipe: Recipe) -> dict[str, NDArray[Any]]:
    arrays = {}
    recipe.begin(tuple(recipe.forms), sum(form.size for form in recipe.forms.values()))
    for name, form in recipe.forms.items():
        arrays[name] = np.empty(form.shape, dtype=form.dtype)
        recipe.fill(name, arrays[name])
    return arrays


def _open_all(home: Path, recipe: Recipe, names: Iterable[str]) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """The arrays that are there and intact, and what is wrong with the others ("" where there is nothing)."""
    found: dict[str, NDArray[Any]] = {}
    wrong: dict[str, str] = {}
    for name in names:
        try:
            verify(home / f"{name}.npy")
            found[name] = _map(home / f"{name}.npy", recipe.forms[name])
        except FileNotFoundError:
            wrong[name] = ""
        except DamagedError as error:
            wrong[name] = str(error)
    return found, wrong


def _map_all(home: Path, recipe: Recipe, names: Iterable[str]) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """As :func:`_open_all` for arrays that this process has just written itself."""
    found: dict[str, NDArray[Any]] = {}
    wrong: dict[str, str] = {}
    for name in names:
        try:
            found[name] = _map(home / f"{name}.npy", recipe.forms[name])
        except FileNotFoundError:
            wrong[name] = ""
    return found, wrong


def _map(file: Path, form: Form) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(file, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise DamagedError(str(error)) from error
    if array.shape != form.shape or array.dtype != form.dtype:
        raise DamagedError("it holds another array")
    return array


def _make(home: Path, recipe: Recipe, names: tuple[str, ...]) -> None:
    """Make these arrays; whoever holds the lock is the only one who does."""
    with changing(home):
        if not home.is_dir():
            discard(home)
        home.mkdir(parents=True, exist_ok=True)
        remove_unfinished(home)
        for name in names:
            discard(home / f"{name}.npy")
        if (home / META).is_dir():
            discard(home / META)
    needed = sum(recipe.forms[name].file_size for name in names)
    try:
        with room_for(home, needed, recipe.subject):
            write_bytes(home / META, _describe(recipe))
            recipe.begin(names, needed)
            for name in names:
                _make_one(home, recipe, name)
    finally:
        remove_unfinished(home)
        if not any(home.glob("*.npy")):
            discard(home)


def _make_one(home: Path, recipe: Recipe, name: str) -> None:
    form, unfinished = recipe.forms[name], home / f"{UNFINISHED}{name}.npy"
    home.mkdir(exist_ok=True)  # somebody may clear the cache between two of them
    array = np.lib.format.open_memmap(unfinished, mode="w+", dtype=form.dtype, shape=form.shape)
    reserve(unfinished)
    recipe.fill(name, array)
    array.flush()
    del array
    with changing(home):
        seal(unfinished)
        sync(unfinished)
        os.replace(unfinished, home / f"{name}.npy")
    sync(home)


def remove_unfinished(home: Path) -> None:
    """Delete what a killed process left in an entry's folder; only with the entry's lock held."""
    for leftover in home.glob(".*"):
        remove(leftover)


def _describe(recipe: Recipe) -> bytes:
    meta = {"title": recipe.title, **recipe.about}
    return (json.dumps(meta, indent=1, sort_keys=True) + "\n").encode()
