"""Protocols: what is old, what is labelled, what is scored and how. One card in every run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from gcdbench.core.errors import ConfigError, UnknownName

KPolicy = Literal["known", "estimated"]

PAPER_OLD_COUNT = {"kvasir": 4, "organamnist": 5, "organcmnist": 5, "nct-crc-he-100k": 5}
"""How many classes the paper's shares imply are old; which ones is our assumption: the first in the card's order."""

PAPER_IMPLIED_FRACTION = {"kvasir": 0.2}
"""Label fractions that the paper's printed Kvasir rows imply (w = 0.444) against the stated one half."""


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """The rules of one experiment.

    old_rule: ``"first"`` classes in the card's order, every second one of them, ``"alternate"``, or the largest ones,
        ``"by-count"``.
    old_count: number of old classes; None means half of them, rounded up.
    """

    name: str
    old_rule: Literal["first", "alternate", "by-count"] = "first"
    old_count: int | None = None
    label_fraction: float = 0.5
    stratified: bool = True
    keep_groups: bool = True
    split_seed: int = 0
    k_policy: KPolicy = "known"
    evaluation: Literal["unlabelled"] = "unlabelled"
    match_rule: Literal["v2"] = "v2"
    epoch_selection: Literal["last"] = "last"

    def __post_init__(self) -> None:
        if not 0.0 < self.label_fraction <= 1.0:
            raise ConfigError(f"label_fraction must be above 0 and at most 1, not {self.label_fraction}.")

    def old_classes(self, counts: Sequence[int]) -> tuple[int, ...]:
        """Indices of the old classes, in the card's order, given the number of training images of each class."""
        total = len(counts)
        wanted = math.ceil(total / 2) if self.old_count is None else self.old_count
        if not 1 <= wanted <= total:
            raise ConfigError(
                f"Protocol '{self.name}' wants {wanted} old classes, but the dataset has {total} classes."
            )
        if self.old_rule == "first":
            return tuple(range(wanted))
        if self.old_rule == "alternate":
            every_second = tuple(range(0, total, 2))
            if wanted > len(every_second):
                raise ConfigError(f"Protocol '{self.name}' has only {len(every_second)} old classes, not {wanted}.")
            return every_second[:wanted]
        by_size = sorted(range(total), key=lambda c: (-counts[c], c))
        return tuple(sorted(by_size[:wanted]))

    def card(self) -> dict[str, Any]:
        """Every field, for identities, run cards and captions."""
        return asdict(self)


PROTOCOLS: dict[str, str] = {
    "paper-stated": "the paper's text: the first 4 / 5 / 5 / 5 classes old, 50 % labelled",
    "paper-implied": "what the paper's printed numbers imply: as stated, but 20 % labelled on Kvasir",
    "by-count": "the largest classes old, 50 % labelled",
    "half": "any dataset: the first half of the classes old (rounded up), 50 % labelled, stratified",
    "alternate": "any dataset: every second class old, 50 % labelled; look-alikes often sort side by side",
}


def default_protocol(dataset: str) -> str:
    """``paper-stated`` for the paper's datasets, ``half`` for any other."""
    return "paper-stated" if dataset in PAPER_OLD_COUNT else "half"


def require_protocol(name: str | None) -> None:
    """Refuse a name that no protocol has; None is nobody's."""
    if name is not None and name not in PROTOCOLS:
        raise UnknownName("protocol", name, PROTOCOLS)


def named_protocol(name: str, dataset: str) -> Protocol:
    """The protocol ``name`` as it applies to ``dataset``."""
    require_protocol(name)
    paper_count = PAPER_OLD_COUNT.get(dataset)
    if name == "half":
        return Protocol(name=name)
    if name == "alternate":
        return Protocol(name=name, old_rule="alternate")
    if name == "by-count":
        return Protocol(name=name, old_rule="by-count", old_count=paper_count)
    if paper_count is None:
        raise ConfigError(
            f"Protocol '{name}' is defined for {', '.join(sorted(PAPER_OLD_COUNT))} only, not for '{dataset}'.",
            hint="Use --protocol half, which fits any dataset.",
        )
    stated = Protocol(name=name, old_count=paper_count)
    if name == "paper-implied":
        return replace(stated, label_fraction=PAPER_IMPLIED_FRACTION.get(dataset, stated.label_fraction))
    return stated


def renamed(protocol: Protocol, changed: Protocol) -> Protocol:
    """``changed`` under a name of its own: with a changed rule it must not be mistaken for the named protocol.

    The name holds what really differs, as values: "0.30" and "0.3" are one protocol.
    """
    before = protocol.card()
    differing = sorted((key, value) for key, value in changed.card().items() if value != before[key])
    if not differing:
        return changed
    return replace(changed, name=f"{protocol.name}+{','.join(f'{key}={value}' for key, value in differing)}")
