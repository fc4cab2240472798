"""The protocols of one dataset: those on its card and the rules that fit any dataset.

Which of them is the default is a fact on the card, so it never depends on what else is installed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from gcdbench.core.errors import ConfigError
from gcdbench.datasets.card import CardProtocol, DatasetCard, load_card
from gcdbench.datasets.imported import imported_protocols
from gcdbench.splits.protocol import GENERIC, Protocol, generic_protocol

if TYPE_CHECKING:
    from gcdbench.plugins.manager import PluginManager
    from gcdbench.plugins.specs import DatasetSpec

ANY_DATASET = "half"
"""The default protocol of a dataset without a card."""


def protocol_names(card: DatasetCard | None) -> tuple[str, ...]:
    """What a dataset with this card has, its own protocols first."""
    return (*(card.protocols if card else ()), *GENERIC)


def default_protocol(card: DatasetCard | None) -> str:
    """The protocol that is meant where none is named."""
    return card.default_protocol if card else ANY_DATASET


def named_protocol(name: str | None, card: DatasetCard | None, dataset: str) -> Protocol:
    """The protocol ``name`` (None: the default) of the dataset with this card; ``dataset`` is for messages."""
    name = name or default_protocol(card)
    own = card.protocols if card else {}
    if name in own:
        return _from_card(own[name])
    if name in GENERIC:
        usual = own.get(default_protocol(card))
        return generic_protocol(name, old_count=usual.old_count if usual else None)
    if card and name in card.published_splits:
        raise ConfigError(
            f"The dataset '{dataset}' has no protocol '{name}' yet: its old classes are published as a file.",
            hint=f"Import that file once: 'gcdbench data split import --format ssb FILE {dataset}'.",
        )
    raise ConfigError(
        f"The dataset '{dataset}' has no protocol '{name}'; it has {', '.join(protocol_names(card))}.",
        hint=f"Leave --protocol out for {default_protocol(card)}; 'gcdbench data show {dataset}' describes them; "
        "'gcdbench data split import --format ssb' takes over published lists of old classes.",
    )


def _from_card(protocol: CardProtocol) -> Protocol:
    if isinstance(protocol.old_classes, int):
        return Protocol(name=protocol.name, old_count=protocol.old_classes, label_fraction=protocol.label_fraction)
    return Protocol(
        name=protocol.name,
        old_rule="named",
        old_names=protocol.old_classes,
        label_fraction=protocol.label_fraction,
    )


def describe_protocols(card: DatasetCard) -> dict[str, str]:
    """One line for each protocol of a dataset, by its name."""
    return {name: _describe(protocol) for name, protocol in card.protocols.items()} | GENERIC


def _describe(protocol: CardProtocol) -> str:
    old = protocol.old_classes
    which = f"the first {old} classes old" if isinstance(old, int) else f"old: {', '.join(old)}"
    source = f"{protocol.citation}. {protocol.note}" if protocol.note else protocol.citation
    return f"{which}, {100 * protocol.label_fraction:g} % labelled ({source.rstrip('.')})"


def planning_card(spec: DatasetSpec) -> DatasetCard | None:
    """The card of a registered dataset, as far as planning needs one: without looking at the data.

    Protocols that the user imported add to the card's own.
    """
    return with_imported(_card_at(spec.card)) if spec.card else None


def with_imported(card: DatasetCard) -> DatasetCard:
    """The card with the protocols that the user imported for its dataset; the default stays the card's."""
    imported = imported_protocols(card)
    return replace(card, protocols={**imported, **card.protocols}) if imported else card


def card_of(dataset: str, manager: PluginManager) -> DatasetCard | None:
    """The same by the dataset's name, ``folder:<path>`` included; None as well where the dataset is not known here."""
    name = dataset.partition(":")[0]
    return planning_card(manager.get("datasets", name)) if name in manager.names("datasets") else None


def require_known(name: str | None, datasets: Iterable[str], manager: PluginManager, where: str) -> None:
    """Refuse a protocol that none of these datasets has; ``where`` they stand is for the message. None is nobody's."""
    known = dict.fromkeys(own for dataset in datasets for own in protocol_names(card_of(dataset, manager)))
    if name is not None and name not in known:
        raise ConfigError(f"No dataset of {where} has a protocol '{name}'; they have {', '.join(known)}.")


@lru_cache(maxsize=256)
def _card_at(path: str) -> DatasetCard:
    """Every cell of a table is planned; its card is read once."""
    return load_card(Path(path))
