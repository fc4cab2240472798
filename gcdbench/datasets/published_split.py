"""The names of published lists of old classes: only the published list may have one.

Results are put beside the literature by the name of their protocol, so a list of somebody's own needs another name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from gcdbench.core.errors import DataError
from gcdbench.datasets.card import CardProtocol, DatasetCard

BENCHMARK = "ssb"
"""The Semantic Shift Benchmark, whose format is imported under this name unless another is given."""


def positions_digest(positions: Iterable[int]) -> str:
    """sha256 of class positions: ascending, decimal, with commas between."""
    return hashlib.sha256(",".join(map(str, sorted(positions))).encode()).hexdigest()


def require_published(card: DatasetCard, protocol: CardProtocol) -> None:
    """Refuse a protocol that goes by a published list's name and is not that list, with its share of labels."""
    published = card.published_splits.get(protocol.name)
    if published is None:
        if protocol.name == BENCHMARK:
            raise _refusal(
                f"The card of '{card.name}' knows no list of old classes that was published as '{BENCHMARK}'."
            )
        return
    listed = f"The list that was published as '{protocol.name}' for '{card.name}' has"
    if protocol.old_count != published.old_count:
        raise _refusal(f"{listed} {published.old_count} old classes, and this one {protocol.old_count}.")
    if isinstance(protocol.old_classes, int):
        positions = list(range(protocol.old_classes))
    else:
        positions = [card.classes.index(name) for name in protocol.old_classes]
    if positions_digest(positions) != published.old_sha256:
        raise _refusal(f"{listed} other old classes than this one: its digest is {published.old_sha256[:12]}….")
    if protocol.label_fraction != published.label_fraction:
        shares = [f"{100 * share:g} %" for share in (published.label_fraction, protocol.label_fraction)]
        raise _refusal(f"{listed} {shares[0]} of the images of old classes labelled, not {shares[1]}.")


def _refusal(message: str) -> DataError:
    return DataError(message, hint="Import a list of your own under a name of its own: --name NAME.")
