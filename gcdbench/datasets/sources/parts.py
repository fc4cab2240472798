"""Names of the parts of a dataset, as people write them."""

from __future__ import annotations

import re

_KINDS = {
    "train": "train",
    "training": "train",
    "val": "train",
    "valid": "train",
    "validation": "train",
    "test": "test",
    "testing": "test",
}
"""A validation part counts as training data: category discovery selects nothing on it."""

PART_NAMES = tuple(_KINDS)
"""What a part may be called, in any capitalisation and with an appended "set", "data", "images" or "part"."""

_SPELLED = re.compile(rf"({'|'.join(sorted(_KINDS, key=len, reverse=True))})[ _-]?(?:set|data|images|part)?")


def part_of(name: str) -> str | None:
    """``"train"`` or ``"test"`` where ``name`` names a part (``Training``, ``Test_set``, ``VAL``), else None."""
    match = _SPELLED.fullmatch(name.strip().casefold())
    return None if match is None else _KINDS[match[1]]
