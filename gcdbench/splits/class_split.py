"""Published splits of classes into old and new: JSON, or pickles of plain data that are read without running anything.

Two forms are known: ``{"known_classes": [...], "unknown_classes": [...] or {"Hard": [...], ...}}`` of the Semantic
Shift Benchmark, and ``{"Old": [...], "New": [...]}``. Entries are positions in the dataset's own order of classes,
counted from 0, or names.
"""

from __future__ import annotations

import io
import json
import pickle
import pickletools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from gcdbench.core.errors import DataError

MOST_BYTES = 2**20
MOST_STEPS = 20_000
"""Instructions in a pickle. Each may be one level of nesting or one place of the memo, so these are bounded too."""

FORMS = (("known_classes", "unknown_classes"), ("Old", "New"))


@dataclass(frozen=True, kw_only=True)
class ClassSplit:
    """Names of the old and of the new classes, each in the dataset's order."""

    old: tuple[str, ...]
    new: tuple[str, ...]


def read_class_split(file: Path, data: bytes, classes: Sequence[str]) -> ClassSplit:
    """The split in the content ``data`` of ``file``; every class of the dataset must be old or new, and none both."""
    if len(data) > MOST_BYTES:
        raise DataError(f"{file} has more than {MOST_BYTES:,} bytes; no list of classes needs that many.")
    table = _parse(file, data)
    form = next((form for form in FORMS if isinstance(table, dict) and set(form) <= set(table)), None)
    if form is None:
        keys = ", ".join(f"'{old}' and '{new}'" for old, new in FORMS)
        raise DataError(f"{file} is not a split of classes: expected a table with {keys}.")
    old = _positions(file, form[0], table[form[0]], classes)
    new = _positions(file, form[1], table[form[1]], classes)
    if both := sorted(set(old) & set(new)):
        raise DataError(f"{file} has the class '{classes[both[0]]}' both as old and as new.")
    if neither := sorted(set(range(len(classes))) - set(old) - set(new)):
        raise DataError(
            f"{file} lists {len(neither)} of the {len(classes)} classes neither as old nor as new, first "
            f"'{classes[neither[0]]}'.",
            hint="It is a split of another dataset, or of a part of this one.",
        )
    if not old or not new:
        raise DataError(f"{file} has {len(old)} old and {len(new)} new classes; both are needed.")
    return ClassSplit(old=tuple(classes[i] for i in sorted(old)), new=tuple(classes[i] for i in sorted(new)))


def _parse(file: Path, data: bytes) -> Any:
    if data.lstrip()[:1] in (b"{", b"["):  # neither begins a pickle
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{file} is not JSON: {error}.") from None
    try:
        _require_small(data)
        return _PlainUnpickler(io.BytesIO(data)).load()
    except DataError as error:
        raise DataError(f"{file} {error.message}", hint=error.hint) from None
    except Exception as error:  # bytes that somebody sent: a damaged pickle may fail in any way, and has run nothing
        raise DataError(f"{file} is neither JSON nor a readable pickle: {type(error).__name__}.") from None


def _require_small(data: bytes) -> None:
    """Refuse a pickle that would exhaust memory or the stack while it is read, although nothing in it runs.

    Only looks at the instructions. Texts that are shorter than they say end here as well.
    """
    for step, (instruction, argument, _) in enumerate(pickletools.genops(data)):
        place = argument if isinstance(argument, int) and instruction.name.endswith("PUT") else 0
        if step >= MOST_STEPS or place >= MOST_STEPS:
            raise DataError("is refused, and none of it was run: no list of classes needs such a long pickle.")


class _PlainUnpickler(pickle.Unpickler):
    """Numbers, strings, lists, tuples, sets and tables only: whatever would need a name from a module is refused.

    Without a name nothing can be called, so nothing in the file can run.
    """

    def find_class(self, module_name: str, global_name: str, /) -> NoReturn:
        raise DataError(
            f"is refused, and none of it was run: it asks for {module_name}.{global_name}, and a list of classes "
            "needs plain numbers and strings only.",
            hint="The Semantic Shift Benchmark publishes its splits as JSON, too.",
        )

    def persistent_load(self, pid: Any, /) -> NoReturn:
        raise DataError("is refused: it refers to something outside itself.")


def _positions(file: Path, key: str, value: object, classes: Sequence[str]) -> list[int]:
    """Positions of the classes in a list, or in all lists of a table."""
    groups = list(value.values()) if isinstance(value, dict) else [value]
    index = {name: position for position, name in enumerate(classes)}
    found: list[int] = []
    for group in groups:
        if not isinstance(group, (list, tuple)):
            raise DataError(f"{file}: '{key}' must be a list of classes, not {type(group).__name__}.")
        for item in group:
            position = index.get(item) if isinstance(item, str) else item
            if not isinstance(position, int) or isinstance(position, bool) or not 0 <= position < len(classes):
                raise DataError(
                    f"{file}: '{key}' has {_shown(item)}, which is not a class of this dataset "
                    f"(names, or 0 to {len(classes) - 1})."
                )
            found.append(position)
        # After each group: a pickle may hold one long list under thousands of keys.
        if len(set(found)) != len(found):
            raise DataError(f"{file}: '{key}' names a class twice.")
    return found


def _shown(item: object) -> str:
    """An entry as a message can hold it; a list inside may be endless when it is written out, as may a number."""
    if isinstance(item, (str, bool, float)) or (isinstance(item, int) and abs(item) < 10**40):
        return repr(str(item)[:40])
    return f"something else ({type(item).__name__})"
