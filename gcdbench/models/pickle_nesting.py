"""How deep the tuples of a pickle are nested, without loading it.

Hashing nested tuples needs the processor's stack: a file of one megabyte whose tuples are nested a million times deep
would end the process, where a refusal is wanted. Nothing that holds weights has more than a few levels.
"""

from __future__ import annotations

import io
import pickletools
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

DEEPEST = 100

LEGACY_PICKLES = 5
"""torch's older files: a number, a version, the machine, the state, the names of storages; then storages follow."""

_DEEPER = {"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "FROZENSET"}
_KEPT = {"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"}
_TAKEN = {"GET", "BINGET", "LONG_BINGET"}


def nested_too_deep(path: Path) -> bool:
    """Whether a file that ``torch.load`` would read has tuples nested deeper than any weights have."""
    return any(tuple_depth(stream) > DEEPEST for stream in _pickles(path))


def _pickles(path: Path) -> Iterator[IO[bytes]]:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".pkl"):
                    yield io.BytesIO(archive.read(name))
        return
    with path.open("rb") as stream:
        for _ in range(LEGACY_PICKLES):
            yield stream


def tuple_depth(stream: IO[bytes]) -> int:
    """Of one pickle: a run through its instructions that keeps depths in place of values; it never says too little."""
    stack: list[int | None] = []
    memo: dict[Any, int] = {}
    deepest = 0
    for code, argument, _ in pickletools.genops(stream):
        if code.name in _KEPT:
            memo[len(memo) if argument is None else argument] = stack[-1] or 0
            continue
        if code.name in _TAKEN:
            stack.append(memo.get(argument, 0))
            continue
        if code.name == "MARK":
            stack.append(None)
            continue
        depth = max(_pop(stack, code), default=0) + (code.name in _DEEPER)
        deepest = max(deepest, depth)
        stack.extend([depth] * len(code.stack_after))
    return deepest


def _pop(stack: list[int | None], code: pickletools.OpcodeInfo) -> list[int]:
    """What an instruction takes from the stack: all down to a mark, where it names one, and what it names before it."""
    taken: list[int] = []
    names = [kind.name for kind in code.stack_before]
    if "mark" in names:
        while (top := stack.pop()) is not None:
            taken.append(top)
        names = names[: names.index("mark")]
    for _ in names:
        top = stack.pop()
        taken.append(0 if top is None else top)
    return taken
