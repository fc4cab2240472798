"""The Semantic Shift Benchmark's lists of old classes, as facts: what its files hold, and files like them."""

from __future__ import annotations

import random
from itertools import islice

import numpy as np

from gcdbench.datasets.card import load_card

PUBLISHED: dict[str, tuple[int, tuple[int, ...], dict[str, int]]] = {
    "cub-200-2011": (
        0xF2650F59CE646DA3EA5A90840EEB97B56921AD1DC4DC8E9AA1,
        (0, 5, 7, 9, 11, 12, 15, 17),
        {"Easy": 32, "Medium": 34, "Hard": 34},
    ),
    "stanford-cars": (
        0xFBF77FFFFFFFFFFE2AC210356A01608000064524016510A87,
        (0, 1, 2, 7, 9, 11, 16, 20),
        {"Hard": 7, "Medium": 15, "Easy": 76},
    ),
    "fgvc-aircraft": (
        0x89000B28F8731FAF279EB4C3F,
        (0, 1, 2, 3, 4, 5, 10, 11),
        {"Hard": 13, "Medium": 17, "Easy": 20},
    ),
}
"""Old positions of the benchmark's JSON files as bits, their first ones, and how many new classes each key has."""


def published_old(dataset: str) -> list[int]:
    """Published old positions; Herbarium's are the draw in the published code, seed 0 of numpy's legacy generator."""
    if dataset == "herbarium-19":
        return np.random.RandomState(0).choice(range(683), size=(341,), replace=False).tolist()
    bits, first, _ = PUBLISHED[dataset]
    old = [position for position in range(bits.bit_length()) if bits >> position & 1]
    assert tuple(old[: len(first)]) == first
    return old


def published(dataset: str, seed: int = 0) -> dict[str, object]:
    """A file as the published one, its classes in an order of its own."""
    old = published_old(dataset)
    new = sorted(set(range(len(load_card(dataset).classes))) - set(old))
    chance = random.Random(seed)
    chance.shuffle(old)
    chance.shuffle(new)
    rest = iter(new)
    sizes = PUBLISHED[dataset][2] if dataset in PUBLISHED else None
    groups = {key: list(islice(rest, size)) for key, size in sizes.items()} if sizes else new
    assert not sizes or not list(rest)
    return {"known_classes": old, "unknown_classes": groups}
