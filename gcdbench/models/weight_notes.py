"""What is known about weight files apart from their numbers, which readers of a result should learn. No torch here."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def _notes() -> dict[str, str]:
    content = tomllib.loads(Path(__file__).with_name("weight_notes.toml").read_text(encoding="utf-8"))
    return {entry["sha256"]: f"{entry['title']}: {entry['note']}" for entry in content["weights"]}


def note_on_weights(sha256: str) -> str | None:
    """What a reader has to know of the weights with this digest, for example that they cannot be redistributed."""
    note = _notes().get(sha256)
    return None if note is None else f"Weights {sha256[:12]} ({note})."
