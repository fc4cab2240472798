"""What a user asked for, before anything of it was looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gcdbench.splits.protocol import KPolicy


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user wrote. None means "not said"."""

    method: str
    dataset: str
    variant: str | None = None
    preset: str | None = None
    protocol: str | None = None
    k_policy: KPolicy = "known"
    seed: int = 0
    overrides: Mapping[str, object] = field(default_factory=dict)
    dataset_options: Mapping[str, str] = field(default_factory=dict)
    split: str | None = None
