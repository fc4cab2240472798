"""How work on many images is cut into chunks, and how many threads share them. No torch here: plans are told by it."""

from __future__ import annotations

from itertools import pairwise

CHUNK_PIXELS = 64 * 128 * 128
"""Pixels that go through the network at once: enough to keep it busy, few enough for a laptop's memory."""

CHUNK_MEMORY = 170 * 2**20
"""Bytes that CHUNK_PIXELS hold in activations on their way through Lite0's prefix; ResNet-18's takes less."""

BUILDING_MEMORY = 2**30
"""Bytes for the activations of all building threads; the rest of a run then stays well below 2 GiB in all."""


def chunk_size(image_size: int) -> int:
    """Images that go through the network at once."""
    return max(CHUNK_PIXELS // image_size**2, 8) if image_size > 128 else 64


def cut_chunks(count: int, size: int) -> list[tuple[int, int]]:
    """(first, last) of chunks of ``size``; none of them is a single image, for which a library may compute otherwise.

    So the bits of an output do not depend on which images are stored with it.
    """
    edges = [*range(0, count, size), count]
    if len(edges) > 2 and edges[-1] - edges[-2] == 1:
        del edges[-2]
    return list(pairwise(edges)) if count else []


def building_threads(cores: int, image_size: int) -> int:
    """Threads that build at once: one per core, as far as their activations fit into memory, and at least one."""
    chunk = CHUNK_MEMORY * chunk_size(image_size) * image_size**2 // CHUNK_PIXELS
    return max(min(cores, BUILDING_MEMORY // chunk), 1)
