"""Keep freed memory in the process instead of giving it back to the system after every operation."""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # from glibc's malloc.h
KEEP = 2**30 - 1


@lru_cache(maxsize=1)
def keep_freed_memory() -> bool:
    """Tell the C library to reuse large blocks; False where that is not possible.

    glibc maps every block above 32 MB afresh and unmaps it on free, so each large activation is paid for twice: once
    computed, once in page faults. On the frozen prefix at 64 images per batch that was about half of the time.
    The thresholds hold for the first arena only, so threads that build a bank share it.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # musl has none
        return False
    wanted = ((M_MMAP_THRESHOLD, KEEP), (M_TRIM_THRESHOLD, KEEP), (M_ARENA_MAX, 1))
    return all(mallopt(parameter, value) == 1 for parameter, value in wanted)
