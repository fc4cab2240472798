"""A request to stop at the next moment from which a training can be continued exactly.

A batch system warns a job before it ends it. Whoever hears the warning asks here; the training loop looks after each
step, writes a checkpoint and ends as by Ctrl-C.
"""

from __future__ import annotations

import threading

_asked = threading.Event()


def ask_to_stop() -> None:
    """Ask the training of this process to stop after the step it is in; may be called by a signal handler."""
    _asked.set()


def stop_asked() -> bool:
    """Whether the training was asked to stop."""
    return _asked.is_set()


def forget() -> None:
    """Withdraw the request, for a process that does more than one run."""
    _asked.clear()
