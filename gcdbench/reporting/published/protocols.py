"""The old classes' share that each named protocol gives on a dataset whose class sizes are known."""

from __future__ import annotations

from gcdbench.core.errors import GCDBenchError
from gcdbench.datasets.card import DatasetCard
from gcdbench.datasets.protocols import card_of, named_protocol, protocol_names
from gcdbench.plugins.manager import PluginManager
from gcdbench.splits.protocol import Protocol


def share_of_protocol(protocol: Protocol, counts: tuple[int, ...], classes: tuple[str, ...] = ()) -> float:
    """w from the number of training images of each class; the labelled part of old classes is not scored."""
    old = set(protocol.old_classes(counts, classes))
    hidden = [n * (1 - protocol.label_fraction) if c in old else float(n) for c, n in enumerate(counts)]
    return sum(hidden[c] for c in old) / sum(hidden)


def expected_shares(dataset: str, manager: PluginManager) -> dict[str, float]:
    """Protocol name -> w; empty when no card with class sizes is known for this dataset."""
    try:
        card = card_of(dataset, manager)
    except GCDBenchError:  # a third party's card that cannot be read
        return {}
    return {} if card is None or card.counts is None else _shares(dataset, card, card.counts)


def _shares(dataset: str, card: DatasetCard, counts: tuple[int, ...]) -> dict[str, float]:
    return {
        name: share_of_protocol(named_protocol(name, card, dataset), counts, card.classes)
        for name in protocol_names(card)
    }
