"""Canonical JSON and hashes: two descriptions are the same run if and only if their canonical text is the same."""

from __future__ import annotations

import hashlib
import json
from typing import Any

RUN_ID_LENGTH = 16


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no spaces and no NaN, so that equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """sha256 (hex) of the canonical JSON of ``value``."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def run_id(identity: dict[str, Any]) -> str:
    """Name of the run with this identity; the runner builds ``identity`` from an explicit allow-list."""
    return digest(identity)[:RUN_ID_LENGTH]
