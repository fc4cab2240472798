"""Whether a file of compiled code can have been written by this user alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

ROOT = 0


def only_mine(path: Path) -> bool:
    """Whether nobody but this user, and the administrator, can have put what is at ``path`` there.

    It and every folder above it, before and after links are followed, must belong to the user or to root and be
    writable for nobody else. A folder that everybody may write but where nobody may replace another's files (the
    sticky bit, as on /tmp) may be further up, not directly above.
    """
    if not hasattr(os, "getuid"):  # what Windows allows whom is not told by these bits
        return False
    try:
        real = path.resolve(strict=True)
        places = {path.absolute(), *path.absolute().parents, real, *real.parents}
        near = {path.absolute(), path.absolute().parent, real, real.parent}
        return all(_mine(place.lstat(), sticky_is_enough=place not in near) for place in places)
    except (OSError, RuntimeError):  # missing, not to be looked at, or links that go in a circle
        return False


def _mine(status: os.stat_result, *, sticky_is_enough: bool) -> bool:
    if status.st_uid not in (os.getuid(), ROOT):
        return False
    if stat.S_ISLNK(status.st_mode):  # a link's bits mean nothing; its folder says who may replace it
        return True
    others = bool(status.st_mode & stat.S_IWOTH)
    group = bool(status.st_mode & stat.S_IWGRP) and not _own_group(status.st_gid)
    return not (others or group) or (sticky_is_enough and bool(status.st_mode & stat.S_ISVTX))


def _own_group(gid: int) -> bool:
    """Whether a group is the user's private one, which many systems make for each user and let write by default."""
    import grp
    import pwd

    if gid == ROOT:
        return True
    try:
        user, group = pwd.getpwuid(os.getuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return gid == user.pw_gid and group.gr_name == user.pw_name and not set(group.gr_mem) - {user.pw_name}
