"""Reading ahead: where views are stored, a thread reads the next ones while the network works on these.

What is read is a function of what is asked for, so nothing of it depends on whether, or when, it was read ahead.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gcdbench.core.arrays import IntArray
from gcdbench.views.sources import StoredViews, ViewSource


class PairReader:
    """The pairs of a training's steps; use as a context manager, which ends the thread."""

    def __init__(self, source: ViewSource, seed: int) -> None:
        self._source = source
        self._seed = seed
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="views") if isinstance(source, StoredViews) else None
        self._ahead: tuple[int, IntArray, Future[NDArray[Any]]] | None = None

    def __enter__(self) -> PairReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def take(self, ids: IntArray, step: int, then: IntArray | None = None) -> Tensor:
        """``source.pair(ids, step, seed)``; ``then`` are the ids of the next step, if it is known and near."""
        source = self._source
        if self._pool is None or not isinstance(source, StoredViews):
            return source.pair(ids, step, self._seed)
        read = self._read_before(ids, step)
        if read is None:
            read = source.read_pair(ids, step, self._seed)
        if then is not None:
            self._ahead = (step + 1, then, self._pool.submit(source.read_pair, then, step + 1, self._seed))
        return source.finish(read)

    def _read_before(self, ids: IntArray, step: int) -> NDArray[Any] | None:
        ahead, self._ahead = self._ahead, None
        if ahead is None or ahead[0] != step or not np.array_equal(ahead[1], ids):
            return None
        return ahead[2].result()


def read_test_views(source: ViewSource, ids: IntArray, size: int) -> Iterator[Tensor]:
    """``source.test`` of ``ids``, ``size`` of them at a time."""
    pieces = [ids[start : start + size] for start in range(0, len(ids), size)]
    if not isinstance(source, StoredViews) or not pieces:
        yield from map(source.test, pieces)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="views") as pool:
        ahead = pool.submit(source.read_test, pieces[0])
        for following in (*pieces[1:], None):
            read = ahead.result()
            if following is not None:
                ahead = pool.submit(source.read_test, following)
            yield source.finish(read)
