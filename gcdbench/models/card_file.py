"""``model.json`` on disk: written in the newest version, read in every one, refused where it makes no sense."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gcdbench.core.errors import StoreError
from gcdbench.core.files import read_json, write_json
from gcdbench.core.identity import digest
from gcdbench.images.decoding import stored_side
from gcdbench.models.model_card import NEW, SCHEMA, Channels, ModelCard, Names, Preprocessing, Unlikeness, anchored

CARD = "model.json"

LARGEST = 1e30
"""No number of a card is larger; a float of our own would overflow at some point beyond."""

SEAL = "sha256"
"""Key of the digest of all other keys, so that a changed digit is noticed."""


def card_path(directory: Path) -> Path:
    """Where the card of the model in ``directory`` is."""
    return directory / CARD


def write_card(directory: Path, card: ModelCard) -> None:
    """Write ``model.json``, always in the newest version."""
    table = asdict(replace(card, schema=SCHEMA))
    write_json(card_path(directory), {**table, SEAL: digest(_plain(table))})


def read_card(directory: Path) -> ModelCard:
    """The card of a saved model, of this version or of version 1."""
    path = card_path(directory)
    if not path.exists():
        raise StoreError(
            f"There is no saved model in '{directory}'.",
            hint="Only a finished run of a method that predicts with a network has one.",
        )
    try:
        table = read_json(path)
        found = digest({key: value for key, value in table.items() if key != SEAL}) if isinstance(table, dict) else ""
    except (ValueError, RecursionError) as error:  # NaN, half characters, thousands of digits or of brackets
        raise StoreError(f"'{path}' cannot be read: {error}.") from None
    reader = _Reader(table, str(path))
    schema = reader.take("schema", int, default=1)
    if schema > SCHEMA:
        raise StoreError(f"'{path}' was written by a newer version of gcdbench (schema {schema}).", hint="Update it.")
    if schema == 1:
        return _read_first_version(reader)
    if table.get(SEAL) != found:
        raise StoreError(f"'{path}' is damaged: its content does not match the sha256 that was stored with it.")
    return _read(reader)


def change_names(
    directory: Path,
    *,
    classes: Sequence[str] | None = None,
    clusters: Mapping[int, str] | None = None,
    rejected: Sequence[int] | None = None,
) -> ModelCard:
    """Store names of known classes, names of clusters (two clusters of one name are merged) and rejected clusters.

    What is None stays as it is; ``clusters`` and ``rejected`` replace all earlier decisions.
    """
    card = read_card(directory)
    names = card.names
    for number in (*(clusters or {}), *(rejected or ())):
        if not 0 <= number < card.k:
            raise StoreError(f"The model has no cluster {number}.", hint=f"Its clusters are 0 to {card.k - 1}.")
    if classes is not None:
        if len(classes) != card.k_old:
            raise StoreError(f"The model knows {card.k_old} classes, but {len(classes)} names were given for them.")
        names = replace(names, classes=tuple(classes))
    if clusters is not None:
        names = replace(names, clusters=tuple(clusters.get(number, "") for number in range(card.k)))
    if rejected is not None:
        names = replace(names, rejected=tuple(sorted(set(rejected))))
    card = replace(card, names=names)
    write_card(directory, card)
    return card


# Reading -------------------------------------------------------------------------------------------------------------


def _read_first_version(reader: _Reader) -> ModelCard:
    k, k_old, size = (reader.take(key, int) for key in ("k", "k_old", "image_size"))
    return ModelCard(
        **_common(reader, k, k_old, size),
        preprocessing=Preprocessing(image_size=size, stored_side=stored_side(size)),
        names=Names(known=anchored(k, k_old)),
        schema=1,
    )


def _read(reader: _Reader) -> ModelCard:
    how, names = reader.inner("preprocessing"), reader.inner("names")
    k, k_old, size = reader.take("k", int), reader.take("k_old", int), how.take("image_size", int)
    common = _common(reader, k, k_old, size)
    known, clusters = names.items("known", int), names.items("clusters", str)
    rejected, classes = names.items("rejected", int), names.items("classes", str)
    lengths = len(known) == k and len(clusters) in (0, k) and len(classes) in (0, k_old)
    if not lengths or not all(NEW <= c < k_old for c in known) or not all(0 <= c < k for c in rejected):
        raise names.refuse("the names do not fit the number of clusters and known classes")
    unlike = None if reader.table.get("unlikeness") is None else reader.inner("unlikeness")
    card = ModelCard(
        **common,
        preprocessing=Preprocessing(
            image_size=size,
            rule=how.take("rule", str),
            stored_side=how.take("stored_side", int),
            mean=how.channels("mean"),
            std=how.channels("std"),
        ),
        names=Names(known=known, classes=classes, clusters=clusters, rejected=rejected),
        tail=reader.choice("tail", ("trained", "pretrained")),
        hidden=reader.choice("hidden", ("float32", "float16")),
        unlikeness=None
        if unlike is None
        else Unlikeness(
            kind=unlike.take("kind", str),
            threshold=unlike.number("threshold"),
            quantile=unlike.number("quantile"),
            images=unlike.take("images", int),
        ),
        tensors_sha256=reader.take("tensors_sha256", str),
        schema=SCHEMA,
    )
    if not card.image_size <= card.preprocessing.stored_side <= 4 * card.image_size:
        raise how.refuse(f"images of {card.image_size} px are not cut from {card.preprocessing.stored_side} px")
    return card


def _common(reader: _Reader, k: int, k_old: int, size: int) -> dict[str, Any]:
    """What both versions say in the same way."""
    if not (0 <= k_old <= k <= 10**6 and k >= 1 and 8 <= size <= 10**4):
        raise reader.refuse(f"k = {k}, k_old = {k_old} and image_size = {size} do not make a model")
    texts = {key: reader.take(key, str) for key in ("method", "backbone", "weights_sha256", "predictor")}
    return {**texts, "temperature": reader.number("temperature"), "k": k, "k_old": k_old}


@dataclass(frozen=True)
class _Reader:
    """Typed access to a table that somebody else may have written; complaints name the file and the key."""

    table: Any
    where: str

    def __post_init__(self) -> None:
        if not isinstance(self.table, dict):
            raise StoreError(f"'{self.where}' is not the card of a saved model.")

    def refuse(self, what: str) -> StoreError:
        return StoreError(f"'{self.where}' is not the card of a saved model: {what}.")

    def take(self, key: str, kind: type, default: Any = ...) -> Any:
        value = self.table.get(key, default)
        if type(value) is not kind:  # exactly: true is not a number
            raise self.refuse(f"'{key}' is {'missing' if value is ... else 'not ' + _KINDS[kind]}")
        return value

    def number(self, key: str) -> float:
        value = self.table.get(key)
        if type(value) not in (int, float) or not 0.0 < value < LARGEST:
            raise self.refuse(f"'{key}' is not a number above 0")
        return float(value)

    def items(self, key: str, kind: type) -> tuple[Any, ...]:
        values = self.take(key, list)
        if any(type(value) is not kind for value in values):
            raise self.refuse(f"'{key}' is not a list of {_KINDS[kind].removeprefix('a ')}s")
        return tuple(values)

    def channels(self, key: str) -> Channels | None:
        if self.table.get(key) is None:
            return None
        values = self.take(key, list)
        if len(values) != 3 or any(type(value) not in (int, float) or not abs(value) < LARGEST for value in values):
            raise self.refuse(f"'{key}' is not three numbers")
        red, green, blue = map(float, values)
        return red, green, blue

    def choice(self, key: str, known: tuple[str, ...]) -> Any:
        value = self.take(key, str)
        if value not in known:
            raise self.refuse(f"'{key}' is '{value}', not one of {', '.join(known)}")
        return value

    def inner(self, key: str) -> _Reader:
        return _Reader(self.take(key, dict), f"{self.where}: {key}")


_KINDS = {int: "a whole number", str: "a string", list: "a list", dict: "a table"}


def _plain(value: Any) -> Any:
    """As JSON gives it back: tuples are lists."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
