"""A worker process: reads one job as JSON from its standard input, writes events as JSON lines, then the outcome.

Its standard input stays open for as long as somebody waits for the outcome. When it ends, whoever started the worker
has gone, however suddenly; the run then ends as by Ctrl-C: interrupted, with a checkpoint, ready to be resumed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

from gcdbench.runs.events import Event, JobEnded, encode_event

GRACE_SECONDS = 20.0
"""How long a run that nobody waits for may take to come to an orderly end."""
INTERRUPTED = 130


def _emit(event: Event) -> None:
    try:
        sys.stdout.write(encode_event(event) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Nobody listens any more. The watch below ends the run; here it must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _watch() -> None:
    """Wait for the end of standard input, then interrupt the main thread, wherever it is."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    # A signal to the process might be taken by another thread, and then would not end a sleep of the main thread.
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    time.sleep(GRACE_SECONDS)
    os._exit(INTERRUPTED)  # without its lock the run counts as interrupted as well


def _read_line() -> str:
    """The first line of standard input, and nothing beyond it: the rest is for the watch."""
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(sys.stdin.fileno(), 1)
        if not piece:
            break
        line += piece
    return line.decode()


def _interrupt_once(number: int, frame: FrameType | None) -> None:
    """Interrupt the run, and let it come to its end: a second signal must not tear what the first one began."""
    _on_signals(signal.SIG_IGN)
    raise KeyboardInterrupt


def _on_signals(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


def main() -> int:
    """Execute the job; the exit code is 0 when it is done."""
    _on_signals(_interrupt_once)  # even where Ctrl-C is ignored, as shells have it for what runs in the background
    try:
        text = _read_line()
        threading.Thread(target=_watch, name="watch", daemon=True).start()
        from gcdbench.runs.executors.job import run_job
        from gcdbench.runs.executors.wire import decode_job

        return 1 if run_job(decode_job(text), _emit).error else 0
    except KeyboardInterrupt:
        _emit(JobEnded(error="interrupted"))
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
