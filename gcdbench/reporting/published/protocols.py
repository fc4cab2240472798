"""What each named protocol leaves unlabelled on a dataset whose class sizes are known: how many images, and w."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from gcdbench.core.errors import GCDBenchError
from gcdbench.datasets.card import DatasetCard
from gcdbench.datasets.protocols import card_of, named_protocol, protocol_names
from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.published.counts import Sizes
from gcdbench.splits.protocol import Protocol


def share_of_protocol(protocol: Protocol, counts: tuple[int, ...], classes: tuple[str, ...] = ()) -> float:
    """w from the number of training images of each class; the labelled part of old classes is not scored."""
    old = set(protocol.old_classes(counts, classes))
    hidden = [n * (1 - protocol.label_fraction) if c in old else float(n) for c, n in enumerate(counts)]
    return sum(hidden[c] for c in old) / sum(hidden)


def sizes_of_protocol(protocol: Protocol, counts: tuple[int, ...], classes: tuple[str, ...] = ()) -> tuple[Sizes, ...]:
    """The D_u that a protocol allows: one, or several where some old class cannot be divided as it says.

    Nothing tells whether such a class was rounded up or down, so every sum from "all down" to "all up" is allowed.
    """
    old = set(protocol.old_classes(counts, classes))
    hidden = [counts[c] * (1 - Fraction(str(protocol.label_fraction))) for c in old]
    new = sum(n for c, n in enumerate(counts) if c not in old)
    least, most = sum(map(math.floor, hidden)), sum(map(math.ceil, hidden))
    return tuple(Sizes(old=number, new=new) for number in range(least, most + 1))


def expected_shares(dataset: str, manager: PluginManager) -> dict[str, float]:
    """Protocol name -> w; empty when no card with class sizes is known for this dataset."""
    return {
        name: share_of_protocol(protocol, card.counts, card.classes)
        for name, protocol, card in _protocols_on(dataset, manager)
        if card.counts is not None
    }


def expected_sizes(dataset: str, manager: PluginManager) -> dict[str, tuple[Sizes, ...]]:
    """Protocol name -> D_u; empty where class sizes are unknown, or where whole groups of images must stay together."""
    return {
        name: sizes_of_protocol(protocol, card.counts, card.classes)
        for name, protocol, card in _protocols_on(dataset, manager)
        if card.counts is not None and not card.grouping
    }


def _protocols_on(dataset: str, manager: PluginManager) -> Iterator[tuple[str, Protocol, DatasetCard]]:
    """The named protocols that are defined on a dataset with a card; one that draws old classes leaves no fixed D_u."""
    try:
        card = card_of(dataset, manager)
    except GCDBenchError:  # a third party's card that cannot be read
        return
    if card is None:
        return
    for name in protocol_names(card):
        protocol = named_protocol(name, card, dataset)
        if protocol.old_rule != "drawn":
            yield name, protocol, card
