"""What was learnt by looking into every file of a dataset, kept in the cache as long as no file changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from gcdbench.core.files import write_bytes
from gcdbench.core.places import cache_dir
from gcdbench.datasets.source import DatasetSource


def remembered(what: str, source: DatasetSource, learn: Callable[[], Any]) -> Any:
    """``learn()``, which gives plain JSON data, or what it gave for the same files before.

    The file in the cache holds no names; a damaged one is not believed.
    """
    if source.fingerprint is None:
        return learn()
    named = (what, source.location, source.fingerprint, repr(source.decode), *source.keys)
    token = hashlib.sha256("\0".join(named).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    file = cache_dir() / "hashes" / f"{token}.{what}"
    known = _read(file)
    if known is None:
        known = {what: learn()}
        body = json.dumps(known, sort_keys=True)
        with suppress(OSError):  # a cache that cannot be written costs time only
            write_bytes(file, f"{hashlib.sha256(body.encode()).hexdigest()}\n{body}\n".encode())
    return known[what]


def _read(file: Path) -> dict[str, Any] | None:
    try:
        digest, _, body = file.read_text(encoding="utf-8").rstrip("\n").partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    if hashlib.sha256(body.encode()).hexdigest() != digest:
        return None
    found: dict[str, Any] = json.loads(body)
    return found
