"""Views per second of the frozen prefix against the chunk size, in one thread, with a chunk for each thread, and with
all threads on one chunk: what the choice of chunks and threads in :mod:`gcdbench.views.bank` rests on.

python -m benchmarks.speed.prefix '{"folder": "", "threads": 2}'
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import torch

from benchmarks.speed.ours import load_backbone
from benchmarks.speed.settings import Settings, parse_settings
from gcdbench.views.threads import run_chunks

CHUNKS = (16, 32, 64, 128, 256)
LEAST_VIEWS = 512
"""Views each figure is measured on, at least."""


def views_per_second(work: Callable[[], None], views: int) -> float:
    """The faster of two rounds, after one that warms up."""
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return views / min(seconds[1:])


def measure_chunk(settings: Settings, chunk: int) -> dict[str, float]:
    """The three ways of working on chunks of one size."""
    prefix = load_backbone(settings.backbone).prefix
    images = torch.rand(chunk, 3, settings.image_size, settings.image_size).to(memory_format=torch.channels_last)
    count = max(settings.threads, -(-LEAST_VIEWS // chunk))

    def one_after_another(threads: int) -> Callable[[], None]:
        def work() -> None:
            torch.set_num_threads(threads)
            with torch.no_grad():
                for _ in range(count):
                    prefix(images)

        return work

    def side_by_side() -> None:
        def work(_: int) -> None:
            with torch.no_grad():
                prefix(images)

        for _ in run_chunks(work, [(i,) for i in range(count)], threads=settings.threads):
            pass

    views = count * chunk
    return {
        "chunk": chunk,
        "one_thread": views_per_second(one_after_another(1), views),
        "a_chunk_a_thread": views_per_second(side_by_side, views),
        "all_threads_on_one": views_per_second(one_after_another(settings.threads), views),
    }


def main() -> None:
    """Print one row for each chunk size."""
    settings = parse_settings()
    print(json.dumps({"rows": [measure_chunk(settings, chunk) for chunk in CHUNKS]}))


if __name__ == "__main__":
    main()
