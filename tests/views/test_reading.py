"""Reading ahead changes nothing but the time at which a view is read."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcdbench.core.arrays import IntArray
from gcdbench.views.reading import PairReader, read_test_views
from gcdbench.views.setting import parse_views
from gcdbench.views.sources import StoredViews, ViewSource

COUNT = 30


class Watched(StoredViews):
    """Remembers which thread read what."""

    def __init__(self) -> None:
        values = np.random.default_rng(0).normal(size=(4, COUNT, 2, 2, 3)).astype(np.float16)
        super().__init__(
            parse_views("bank:3"),
            open_window=lambda first: list(values[:3]),
            rows_of=lambda ids: ids,
            decode=lambda drawn: drawn,
            outputs=values[3],
            device="cpu",
        )
        self.reads: list[tuple[int, bool]] = []

    def read_pair(self, ids: IntArray, step: int, seed: int) -> NDArray[Any]:
        self.reads.append((step, threading.current_thread() is threading.main_thread()))
        if step == 13:
            raise OSError("the disk is gone")
        return super().read_pair(ids, step, seed)


class Fresh:
    """Views that are computed, not read."""

    def __init__(self, source: StoredViews) -> None:
        self._source = source

    def start_epoch(self, epoch: int) -> None:
        self._source.start_epoch(epoch)

    def pair(self, ids: IntArray, step: int, seed: int) -> Tensor:
        assert threading.current_thread() is threading.main_thread()
        return self._source.pair(ids, step, seed)

    def test(self, ids: IntArray) -> Tensor:
        assert threading.current_thread() is threading.main_thread()
        return self._source.test(ids)


@pytest.mark.parametrize("computed", [False, True])
def test_pairs_are_the_sources_and_come_from_a_thread_only_where_they_are_stored(computed: bool) -> None:
    plain, watched = Watched(), Watched()
    source: ViewSource = Fresh(watched) if computed else watched
    orders = [np.random.default_rng(step).permutation(COUNT)[:8] for step in range(6)]
    with PairReader(source, 5) as reader:
        for step, ids in enumerate(orders):
            then = orders[step + 1] if step in (0, 1, 3) else None
            assert torch.equal(reader.take(ids, step, then), plain.pair(ids, step, 5))
    if not computed:
        assert [step for step, here in watched.reads if not here] == [1, 2, 4]
        assert sorted(step for step, _ in watched.reads) == list(range(6))


def test_what_was_read_ahead_and_is_not_asked_for_is_not_given() -> None:
    """The plan changed: other images, or another step."""
    plain, source = Watched(), Watched()
    first, other = np.arange(5), np.arange(5, 10)
    with PairReader(source, 0) as reader:
        reader.take(first, 0, first)
        assert torch.equal(reader.take(other, 1, first), plain.pair(other, 1, 0))
        assert torch.equal(reader.take(first, 7), plain.pair(first, 7, 0))


def test_an_error_while_reading_ahead_is_met_by_the_step_that_needs_it() -> None:
    with PairReader(Watched(), 0) as reader:
        reader.take(np.arange(3), 12, np.arange(3))
        with pytest.raises(OSError, match="the disk is gone"):
            reader.take(np.arange(3), 13)


def test_no_thread_is_left_behind() -> None:
    before = threading.active_count()
    with PairReader(Watched(), 0) as reader:
        reader.take(np.arange(3), 12, np.arange(3))
    assert threading.active_count() == before


@pytest.mark.parametrize("size", [1, 7, 30, 100])
@pytest.mark.parametrize("computed", [False, True])
def test_test_views_come_in_order_and_whole(size: int, computed: bool) -> None:
    source: ViewSource = Fresh(Watched()) if computed else Watched()
    ids = np.random.default_rng(1).permutation(COUNT)
    pieces = list(read_test_views(source, ids, size))
    assert [len(piece) for piece in pieces] == [len(ids[start : start + size]) for start in range(0, COUNT, size)]
    assert torch.equal(torch.cat(pieces), source.test(ids))
    assert not list(read_test_views(source, ids[:0], size))
