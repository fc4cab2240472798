"""Killing a process at each of its file operations in turn, for tests of what is left behind."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

OPERATIONS = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate", "os.chmod", "shutil.copyfile")
KILLED, ENDED, FAILED = 9, 0, 1


def count_kill_points(action: Callable[[], None], prepare: Callable[[], None], check: Callable[[int], None]) -> int:
    """Run ``action`` again and again in a child that dies before its 1st, 2nd, … change of a file, until it ends alive.

    ``prepare`` comes before each try, ``check`` after each that was killed. The child dies as by SIGKILL: no handler
    and no ``finally`` runs.
    """
    for point in range(1, 500):
        prepare()
        child = os.fork()
        if child == 0:
            _die_at(point, action)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (KILLED, ENDED), f"the child failed at point {point}"
        if code == ENDED:
            return point - 1
        check(point)
    raise AssertionError("the action does not end")


def _die_at(point: int, action: Callable[[], None]) -> None:
    left = point

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        passing = "lock" in str(arguments[:1]) or "heartbeat" in str(arguments[:1])
        if (event in OPERATIONS or writes) and not passing:
            left -= 1
            if left == 0:
                os._exit(KILLED)

    sys.addaudithook(hook)
    try:
        action()
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(FAILED)
    os._exit(ENDED)
