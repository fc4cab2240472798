"""Whether a network may leave its textbook form for a faster one.

On a CPU some stages of our networks run in another memory layout or with fused operations, equal up to rounding. Who
needs the network as a plain graph of standard operations, as an exporter does, asks for it with :func:`plain_paths`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

_PLAIN: ContextVar[bool] = ContextVar("plain_paths", default=False)


@contextmanager
def plain_paths() -> Iterator[None]:
    """Within this block every network runs as its textbook has it, whatever the device."""
    token = _PLAIN.set(True)
    try:
        yield
    finally:
        _PLAIN.reset(token)


def short_cuts_serve(x: Tensor) -> bool:
    """Whether the CPU's short cuts may work on ``x``: they know neither other devices nor automatic precision."""
    return x.device.type == "cpu" and not _PLAIN.get() and not torch.is_autocast_enabled("cpu")
