"""How many files this process may hold open; a mapped file counts as one."""

from __future__ import annotations

import sys

_SPARE = 128
"""Files that everything else needs."""


def allow_open_files(count: int) -> None:
    """Raise this process's own limit where ``count`` files more than usual will be open, as far as the system lets."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + _SPARE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
