"""Writes that either happen or do not: temporary name, sync, replace. Whatever is written whole is written here."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from gcdbench.core.errors import StoreError


def write_bytes(path: Path, content: bytes | memoryview) -> None:
    """Replace ``path`` by ``content``; a reader sees the old file or the new one, never a part."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise StoreError(
            f"Cannot write to '{path.parent}': {error.strerror or error}.",
            hint="Choose another directory, or make this one writable.",
        ) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise StoreError(f"Cannot write '{path}': {error.strerror or error}.") from error
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Force a file, or the names in a folder, to the disk where the platform allows it."""
    folder = path.is_dir()
    if folder and os.name == "nt":  # Windows cannot open folders
        return
    descriptor = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """:func:`write_bytes` for text in UTF-8."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    """:func:`write_bytes` for JSON, indented for people."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """The content of a JSON file; a broken one is an error that names it."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise StoreError(f"'{path}' does not exist.") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise StoreError(f"'{path}' cannot be read: {error}.") from error
