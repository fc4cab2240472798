"""Independent chunks of numeric work on several cores, with the same bits whatever their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import islice
from typing import TypeVar

import torch

Result = TypeVar("Result")


def run_chunks(work: Callable[..., Result], chunks: Sequence[tuple[int, ...]], *, threads: int) -> Iterator[Result]:
    """Call ``work(*chunk)`` for every chunk and yield what it returns, in the order of completion.

    Each chunk is computed by one thread with single-threaded operators, so its bits depend neither on how many
    threads share the work nor on which of them gets it. torch and numpy release the interpreter lock while they
    compute, so threads are as good as processes here and need no copy of the network.
    """
    threads = min(threads, len(chunks)) or 1
    before = torch.get_num_threads()
    waiting = iter(chunks)
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            running = {pool.submit(work, *chunk) for chunk in islice(waiting, 2 * threads)}
            while running:
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield future.result()
                    running.update(pool.submit(work, *chunk) for chunk in islice(waiting, 1))
    finally:
        torch.set_num_threads(before)
