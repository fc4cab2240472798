"""Work on chunks of a dataset in worker processes, with flat memory and results in order."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

from gcdbench.core.errors import DataError
from gcdbench.core.work import Progress
from gcdbench.plugins.specs import LOCAL_MODULE

State = TypeVar("State")
Result = TypeVar("Result")

_CHUNK = 32
_SERIAL_BELOW = 128
_state: Any = None


def map_chunks(
    task: Callable[[State, range], Result],
    state: State,
    total: int,
    *,
    workers: int,
    stage: str,
    progress: Progress | None = None,
) -> Iterator[Result]:
    """Yield ``task(state, chunk)`` for consecutive chunks of ``range(total)``, in order.

    ``state`` is sent to each worker once. Few samples, one worker, or a process that may not have children
    (a daemon of multiprocessing) mean: no worker processes at all.
    """
    chunks = [range(start, min(start + _CHUNK, total)) for start in range(0, total, _CHUNK)]
    alone = workers <= 1 or total < _SERIAL_BELOW or multiprocessing.current_process().daemon
    results = (task(state, chunk) for chunk in chunks) if alone else _in_pool(task, state, chunks, workers)
    if progress:
        progress(stage, 0, total)
    for chunk, result in zip(chunks, results, strict=True):
        yield result
        if progress:
            progress(stage, chunk.stop, total)


def _in_pool(
    task: Callable[[State, range], Result], state: State, chunks: list[range], workers: int
) -> Iterator[Result]:
    packed = _pack(state)
    # spawn: the calling process may hold torch's threads, which a fork would copy in an unknown condition.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start, initargs=(packed,))
    waiting: deque[Future[Result]] = deque()
    # What the user's own script defines is found by running that script again, as multiprocessing always does.
    starting = nullcontext if b"__main__" in packed else _hidden_main
    try:
        for chunk in chunks:
            # A bounded number of chunks is under way, so that results never pile up in memory.
            if len(waiting) >= 4 * workers:
                yield waiting.popleft().result()
            with starting():
                waiting.append(pool.submit(_run, task, chunk))
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise DataError(
            "A worker process died while images were being read.",
            hint="It may have run out of memory: try again with fewer workers (--workers 1).",
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _pack(state: object) -> bytes:
    try:
        return pickle.dumps(state, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise DataError(
            f"The dataset cannot be read by worker processes: {error}.",
            hint="Its 'raw' and 'decode' must be picklable; with --workers 1 no worker processes are used.",
        ) from None


@contextmanager
def _hidden_main() -> Iterator[None]:
    """Workers started in here do not run the calling script again.

    They need nothing of it, and a script without ``if __name__ == "__main__"`` would start workers in its workers.
    """
    main = sys.modules["__main__"]
    missing = object()
    file, spec = main.__dict__.pop("__file__", missing), main.__dict__.pop("__spec__", missing)
    main.__spec__ = None
    try:
        yield
    finally:
        for name, value in (("__file__", file), ("__spec__", spec)):
            if value is not missing:
                setattr(main, name, value)


def _start(packed: bytes) -> None:
    global _state
    if LOCAL_MODULE.encode() in packed:  # something of a plugin file: this process has to load those files first
        from gcdbench.plugins.manager import get_manager

        get_manager()
    _state = pickle.loads(packed)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    # The queue's pipe stays open in the workers themselves, so a killed parent would leave them waiting for ever.
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run(task: Callable[[Any, range], Result], chunk: range) -> Result:
    return task(_state, chunk)
