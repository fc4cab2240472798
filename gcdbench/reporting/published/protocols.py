"""The old classes' share that each named protocol gives on a dataset whose class sizes are known."""

from __future__ import annotations

from gcdbench.core.errors import GCDBenchError
from gcdbench.datasets.card import load_card
from gcdbench.splits.protocol import PROTOCOLS, Protocol, named_protocol


def share_of_protocol(protocol: Protocol, counts: tuple[int, ...]) -> float:
    """w from the number of training images of each class; the labelled part of old classes is not scored."""
    old = set(protocol.old_classes(counts))
    hidden = [n * (1 - protocol.label_fraction) if c in old else float(n) for c, n in enumerate(counts)]
    return sum(hidden[c] for c in old) / sum(hidden)


def expected_shares(dataset: str) -> dict[str, float]:
    """Protocol name -> w; empty when no card with class sizes is known for this dataset."""
    try:
        counts = load_card(dataset).counts
    except GCDBenchError:
        return {}
    if counts is None:
        return {}
    found: dict[str, float] = {}
    for name in PROTOCOLS:
        try:
            found[name] = share_of_protocol(named_protocol(name, dataset), counts)
        except GCDBenchError:  # a protocol that is not defined for this dataset
            continue
    return found
