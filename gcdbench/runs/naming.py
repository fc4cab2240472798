"""What people decided about the clusters of a run: names, which belong together, which are not a class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tomli_w

from gcdbench.core.errors import ConfigError, StoreError
from gcdbench.core.files import write_text
from gcdbench.core.toml_files import parse_toml
from gcdbench.models.card_file import card_path, change_names, read_card
from gcdbench.models.model_card import NEW, ModelCard, Names
from gcdbench.runs.attempt import hash_files
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.predictions import load_predictions
from gcdbench.runs.reader import NAMES, RECORD
from gcdbench.runs.record import DONE, TRANSDUCTIVE, Record
from gcdbench.runs.recovery import recover
from gcdbench.runs.strict_json import write_sealed

LONGEST = 200
"""Characters of a name."""


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """clusters: names given; merged: cluster -> the cluster it equals; rejected: clusters that are not a class."""

    run: str
    clusters: Mapping[int, str] = field(default_factory=dict)
    merged: Mapping[int, int] = field(default_factory=dict)
    rejected: frozenset[int] = frozenset()

    def target(self, cluster: int) -> int:
        """The cluster that ``cluster`` was merged into in the end; itself where it was not."""
        while cluster in self.merged:
            cluster = self.merged[cluster]
        return cluster

    def to_toml(self) -> str:
        """The content of a names.toml; :func:`parse_decisions` reads it."""
        numbers = sorted({*self.clusters, *self.merged, *self.rejected})
        tables = {
            str(number): {
                **({"name": self.clusters[number]} if number in self.clusters else {}),
                **({"merge_into": self.merged[number]} if number in self.merged else {}),
                **({"rejected": True} if number in self.rejected else {}),
            }
            for number in numbers
        }
        return tomli_w.dumps({"run": self.run, **({"clusters": tables} if tables else {})})


def ties_of(record: Record) -> tuple[int, ...]:
    """(K,) the known class of each cluster of a run, −1 for a new one.

    Its model knows. Without one the first clusters are the known classes where the method ties them to those.
    """
    if card_path(record.home).exists():
        return read_card(record.home).names.known
    found = load_predictions(record, TRANSDUCTIVE)
    known = len(record.split.old_classes) if found.anchored else 0
    return tuple(number if number < known else NEW for number in range(found.k_hat))


def parse_decisions(content: bytes, where: str) -> Decisions:
    """The decisions in a names.toml, checked for their types."""
    try:
        table = parse_toml(content)
    except ValueError as error:
        raise ConfigError(f"'{where}' is not a TOML file: {error}.") from None
    run, clusters = table.get("run"), table.get("clusters", {})
    if not isinstance(run, str) or not isinstance(clusters, dict):
        raise ConfigError(
            f"'{where}' does not say which run it is for.",
            hint='Save it from the gallery, or begin it with: run = "<run id>".',
        )
    if other := sorted(set(table) - {"run", "clusters"}):
        raise ConfigError(f"'{where}' has the unknown key '{other[0]}'.", hint="Its keys are run and clusters.")
    names: dict[int, str] = {}
    merged: dict[int, int] = {}
    rejected: set[int] = set()
    for key, entry in clusters.items():
        number = _number(key, entry, where)
        if "name" in entry:
            names[number] = _name(entry["name"], number, where)
        if "merge_into" in entry:
            if type(entry["merge_into"]) is not int:
                raise ConfigError(f"'{where}': merge_into of cluster {number} is not the number of a cluster.")
            merged[number] = entry["merge_into"]
        if type(entry.get("rejected", False)) is not bool:
            raise ConfigError(f"'{where}': rejected of cluster {number} is neither true nor false.")
        if entry.get("rejected"):
            rejected.add(number)
    return Decisions(run=run, clusters=names, merged=merged, rejected=frozenset(rejected))


def check_decisions(decisions: Decisions, record: Record, ties: tuple[int, ...]) -> None:
    """Refuse decisions for another run, or decisions that contradict it or each other."""
    if decisions.run != record.run_id:
        raise ConfigError(
            f"These names are for the run '{decisions.run}', not for '{record.run_id}'.",
            hint="Clusters of two runs have nothing to do with each other, whatever their numbers.",
        )
    classes = record.split.old_classes
    for number in (*decisions.clusters, *decisions.merged, *decisions.merged.values(), *decisions.rejected):
        if not 0 <= number < len(ties):
            raise ConfigError(f"The run has no cluster {number}.", hint=f"Its clusters are 0 to {len(ties) - 1}.")
    for number in (*decisions.clusters, *decisions.merged, *decisions.rejected):
        if ties[number] != NEW:
            raise ConfigError(
                f"Cluster {number} is the known class '{classes[ties[number]]}': it cannot be renamed, merged into "
                "another one or rejected.",
                hint="A new cluster can be merged into it.",
            )
    for start in decisions.merged:
        seen, number = {start}, start
        while number in decisions.merged:
            number = decisions.merged[number]
            if number in seen:
                raise ConfigError(f"Cluster {start} is merged into itself, by way of others: one of them must stay.")
            seen.add(number)
    used = dict.fromkeys(classes)
    for number, name in decisions.clusters.items():
        if number in decisions.merged:
            continue
        if name in used:
            raise ConfigError(
                f"Cluster {number} has a name that is taken: '{name}'.",
                hint="Merge it into the cluster of that name, or choose another name.",
            )
        used[name] = None


def apply_decisions(names: Names, decisions: Decisions) -> tuple[dict[int, str], tuple[int, ...]]:
    """Names of clusters, and rejected clusters, as a model keeps them; merged clusters share both."""
    plain = replace(names, clusters=(), rejected=())
    called: dict[int, str] = {n: name for n, name in decisions.clusters.items() if n not in decisions.merged}
    for number in decisions.merged:
        target = decisions.target(number)
        called[number] = called.get(target) or plain.of_cluster(target)
    gone = [n for n in range(len(names.known)) if n in decisions.rejected or decisions.target(n) in decisions.rejected]
    return called, tuple(gone)


def read_decisions(record: Record) -> Decisions:
    """The decisions that are stored with a run; none where nobody has decided anything."""
    path = record.home / NAMES
    if not path.is_file():
        return Decisions(run=record.run_id)
    return parse_decisions(path.read_bytes(), str(path))


def store_decisions(directory: RunDirectory, decisions: Decisions) -> ModelCard | None:
    """Check decisions and keep them in the run and in its model; earlier ones go. None without a model."""
    with directory.writing():
        recover(directory)
        record = directory.record()
        if record.status != DONE:
            raise StoreError(f"The run '{record.run_id}' is not done: it is {directory.state_of(record)}.")
        check_decisions(decisions, record, ties_of(record))
        card = None
        if card_path(record.home).exists():
            called, gone = apply_decisions(read_card(record.home).names, decisions)
            card = change_names(record.home, clusters=called, rejected=gone)
        write_text(record.home / NAMES, decisions.to_toml())
        # The model's card is another file now; without this 'gcdbench verify' would call it damaged.
        write_sealed(directory.path / RECORD, replace(record, files=hash_files(record.home)).to_table())
    return card


def read_decision_file(path: Path) -> Decisions:
    """The decisions in a file that the gallery gave."""
    try:
        return parse_decisions(path.read_bytes(), str(path))
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be read: {error.strerror or error}.") from None


def _number(key: str, entry: Any, where: str) -> int:
    if not key.isascii() or not key.isdecimal() or not isinstance(entry, dict):
        raise ConfigError(f"'{where}': '[clusters.{key}]' is not a cluster by its number.")
    if unknown := sorted(set(entry) - {"name", "merge_into", "rejected"}):
        raise ConfigError(
            f"'{where}': cluster {key} has the unknown key '{unknown[0]}'.",
            hint="A cluster has name, merge_into and rejected.",
        )
    return int(key)


def _name(value: Any, number: int, where: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST or not value.isprintable():
        raise ConfigError(
            f"'{where}': the name of cluster {number} is not printable text of 1 to {LONGEST} characters."
        )
    return value.strip()
