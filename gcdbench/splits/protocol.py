"""Protocols: what is old, what is labelled, what is scored and how. One card in every run.

The rules here fit any dataset. A protocol that somebody published for one dataset is a fact about that dataset: it is
on the dataset's card (:mod:`gcdbench.datasets.protocols`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from gcdbench.core.config import to_plain
from gcdbench.core.errors import ConfigError, UnknownName

KPolicy = Literal["known", "estimated"]


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """The rules of one experiment.

    old_rule: ``"first"`` classes in the card's order, every second one of them, ``"alternate"``, the largest ones,
        ``"by-count"``, those that the split seed draws, ``"drawn"``, or those called by their names, ``"named"``.
    old_count: number of old classes; None means half of them, rounded up.
    old_names: the old classes of rule ``"named"``, by name or by their number from 0 in the card's order.
    k: number of clusters that somebody chose under the policy ``"known"``; None means that of the dataset's classes.
    test_copies: whether test images that are byte for byte a labelled one are ``"scored"`` or ``"left-out"``.
    """

    name: str
    old_rule: Literal["first", "alternate", "by-count", "drawn", "named"] = "first"
    old_count: int | None = None
    label_fraction: float = 0.5
    stratified: bool = True
    keep_groups: bool = True
    split_seed: int = 0
    k_policy: KPolicy = "known"
    evaluation: Literal["unlabelled"] = "unlabelled"
    match_rule: Literal["v2"] = "v2"
    epoch_selection: Literal["last"] = "last"
    old_names: tuple[str, ...] = ()
    k: int | None = None
    test_copies: Literal["scored", "left-out"] = "scored"

    def __post_init__(self) -> None:
        if not 0.0 < self.label_fraction <= 1.0:
            raise ConfigError(f"label_fraction must be above 0 and at most 1, not {self.label_fraction}.")
        if (self.old_rule == "named") != bool(self.old_names):
            raise ConfigError("Old classes are named by old_rule=named together with old_names=a,b,…; give both.")

    def old_classes(self, counts: Sequence[int], class_names: Sequence[str] = ()) -> tuple[int, ...]:
        """Indices of the old classes, in the card's order, given the number of training images of each class.

        ``class_names`` are the classes in the card's order; only rule ``"named"`` looks at them.
        """
        if self.old_rule == "named":
            return self._named(class_names)
        total = len(counts)
        wanted = math.ceil(total / 2) if self.old_count is None else self.old_count
        if not 1 <= wanted <= total:
            raise ConfigError(
                f"Protocol '{self.name}' needs {wanted} old classes, but the dataset has {total} classes."
            )
        if self.old_rule == "first":
            return tuple(range(wanted))
        if self.old_rule == "alternate":
            every_second = tuple(range(0, total, 2))
            if wanted > len(every_second):
                raise ConfigError(f"Protocol '{self.name}' has only {len(every_second)} old classes, not {wanted}.")
            return every_second[:wanted]
        if self.old_rule == "drawn":
            return tuple(sorted(sorted(range(total), key=self._place_in_draw)[:wanted]))
        by_size = sorted(range(total), key=lambda c: (-counts[c], c))
        return tuple(sorted(by_size[:wanted]))

    def _place_in_draw(self, number: int) -> bytes:
        """Where a class comes in the draw of old classes: a hash, so that no generator's version matters."""
        return hashlib.sha256(f"{self.split_seed}/old class/{number}".encode()).digest()

    def _named(self, class_names: Sequence[str]) -> tuple[int, ...]:
        wanted = {_find_class(name, class_names) for name in self.old_names}
        if len(wanted) == len(class_names):
            raise ConfigError(f"Protocol '{self.name}' calls all {len(class_names)} classes old: none is new.")
        return tuple(sorted(wanted))

    def card(self) -> dict[str, Any]:
        """Every field, for identities, run cards and captions.

        ``old_names``, ``k`` and ``test_copies`` are younger than stored runs, so they are there only where they say
        something: the ids of those runs stay valid.
        """
        silent = {
            "old_names": not self.old_names, "k": self.k is None, "test_copies": self.test_copies == "scored",
        }  # fmt: skip
        return {key: value for key, value in to_plain(self).items() if not silent.get(key)}


def _find_class(name: str, class_names: Sequence[str]) -> int:
    """A class by its name or, where none is called so, by its number."""
    if name in class_names:
        return class_names.index(name)
    if name.isascii() and name.isdecimal() and int(name) < len(class_names):
        return int(name)
    raise UnknownName("class", name, class_names)


GENERIC: dict[str, str] = {
    "by-count": "the largest classes old, as many as the dataset's own protocol has or half, 50 % labelled",
    "half": "the first half of the classes old (rounded up), 50 % labelled, stratified",
    "alternate": "every second class old, 50 % labelled; look-alikes are often neighbours in the order of names",
    "drawn": "old classes drawn by the split seed, as many as the dataset's own protocol has or half, 50 % labelled",
}
"""Protocols that fit any dataset, and what they do."""


def generic_protocol(name: str, old_count: int | None = None) -> Protocol:
    """One of the protocols for any dataset; ``old_count`` is how many classes ``by-count`` and ``drawn`` take."""
    if name not in GENERIC:
        raise UnknownName("protocol for any dataset", name, GENERIC)
    if name == "by-count":
        return Protocol(name=name, old_rule="by-count", old_count=old_count)
    if name == "drawn":
        return Protocol(name=name, old_rule="drawn", old_count=old_count)
    return Protocol(name=name, old_rule="alternate" if name == "alternate" else "first")


def renamed(protocol: Protocol, changed: Protocol) -> Protocol:
    """``changed`` under a name of its own: with a changed rule it must not be mistaken for the named protocol.

    The name holds what really differs, as values: "0.30" and "0.3" are one protocol. The split seed is not part of it:
    splits of one protocol are its replicates.
    """
    differing = sorted(
        (field.name, value)
        for field in fields(Protocol)
        if field.name != "split_seed" and (value := getattr(changed, field.name)) != getattr(protocol, field.name)
    )
    if not differing:
        return changed
    return replace(changed, name=f"{protocol.name}+{','.join(f'{key}={_text(value)}' for key, value in differing)}")


def _text(value: object) -> str:
    return "|".join(value) if isinstance(value, tuple) else str(value)
