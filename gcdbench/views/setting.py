"""The setting ``views``: what it may say. Apart from the bank, so that a plan is checked without importing torch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from gcdbench.core.errors import ConfigError

MAX_VIEWS = 1024
"""Far more than helps, and few enough for the size of a bank to be a number."""

Kind = Literal["online", "bank", "bank8", "rolling", "auto"]


@dataclass(frozen=True, kw_only=True)
class ViewSetting:
    """Where the views of training come from.

    online: made afresh in every step. bank: drawn from ``count`` stored views per training image, in 16 bits;
    bank8: the same in 8 bits. rolling: as bank8, and before each further epoch the ``fresh`` oldest views are replaced.
    auto: not decided yet.
    """

    kind: Kind
    count: int = 0
    fresh: int = 0

    def __str__(self) -> str:
        count = f":{self.count}" if self.count else ""
        return f"{self.kind}{count}" + (f"/{self.fresh}" if self.fresh > 1 else "")


def parse_views(text: str) -> ViewSetting:
    """``online``, ``auto``, ``bank:V``, ``bank8:V``, ``rolling:V`` or ``rolling:V/K`` (K new views per epoch)."""
    if text in ("online", "auto"):
        return ViewSetting(kind="online" if text == "online" else "auto")
    match = re.fullmatch(r"(bank8?|rolling):([0-9]{1,4})(?:/([0-9]{1,4}))?", text)
    if match is not None:
        rolling = match[1] == "rolling"
        count, fresh = int(match[2]), int(match[3] or rolling)
        if 2 <= count <= MAX_VIEWS and (1 <= fresh <= count if rolling else match[3] is None):
            kind: Kind = "rolling" if rolling else "bank" if match[1] == "bank" else "bank8"
            return ViewSetting(kind=kind, count=count, fresh=fresh)
    raise ConfigError(
        f"views must be 'online', 'auto', or 'bank:V', 'bank8:V', 'rolling:V' with V from 2 to {MAX_VIEWS}, not"
        f" '{text}'.",
        hint="For example bank:16, or rolling:8/2 for eight stored views, two of them new in each epoch.",
    )
