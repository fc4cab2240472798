"""Reading dataset cards from TOML; every complaint names the file and the field."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from gcdbench.core.errors import DataError
from gcdbench.core.toml_files import read_toml
from gcdbench.datasets.card import CardProtocol, DatasetCard, Edition, PublishedSplit
from gcdbench.splits.protocol import GENERIC

_TEXTS = (
    "name",
    "title",
    "modality",
    "licence",
    "citation",
    "source",
    "layout",
    "grouping",
    "purpose",
)
_LISTS = ("defects", "notes", "places")
_KNOWN = {
    *_TEXTS,
    *_LISTS,
    "image_size",
    "classes",
    "count_range",
    "samples",
    "downloads",
    "checksums",
    "editions",
    "protocols",
    "default_protocol",
    "published_splits",
}
_CLASS_FIELDS = {"name", "count", "test_count"}
_EDITION_FIELDS = {"name", "place", "count", "note"}
_PROTOCOL_FIELDS = {"old_classes", "label_fraction", "citation", "note"}
_SPLIT_FIELDS = ("old_count", "old_sha256", "label_fraction", "citation")
_REQUIRED = (
    "name",
    "title",
    "modality",
    "licence",
    "citation",
    "source",
    "layout",
    "classes",
)
_HASHES = {"md5": 32, "sha256": 64}


def read_card(file: Path) -> DatasetCard:
    """The card in a file; one that is wrong is refused with the field."""
    try:
        table = read_toml(file)
    except FileNotFoundError:
        raise DataError(f"There is no dataset card at {file}.") from None
    except OSError as error:
        raise DataError(f"The dataset card {file} cannot be read: {error.strerror or error}.") from None
    except ValueError as error:
        raise DataError(f"The dataset card {file} is not valid TOML: {error}.") from None
    return _Reader(str(file)).card(table)


class _Reader:
    """Turns a TOML table into a card; every complaint names the file and the field."""

    def __init__(self, file: str) -> None:
        self.file = file

    def refuse(self, what: str) -> DataError:
        return DataError(f"The dataset card {self.file} is wrong: {what}.")

    def card(self, table: dict[str, Any]) -> DatasetCard:
        if unknown := sorted(set(table) - _KNOWN):
            raise self.refuse(f"unknown field '{unknown[0]}'")
        if missing := [key for key in _REQUIRED if key not in table]:
            raise self.refuse(f"field '{missing[0]}' is missing")
        names, counts, test_counts = self.classes(table["classes"])
        texts: dict[str, Any] = {key: self.text(key, table[key]) for key in _TEXTS if key in table}
        lists: dict[str, Any] = {key: self.texts(key, table[key]) for key in _LISTS if key in table}
        protocols = self.protocols(table.get("protocols", {}), names)
        default = self.text("default_protocol", table.get("default_protocol", "half"))
        if default not in (*protocols, *GENERIC):
            raise self.refuse(f"'default_protocol' is '{default}', but the card has no [protocols.{default}]")
        if texts.get("purpose", "classification") not in ("classification", "masks"):
            raise self.refuse("'purpose' must be 'classification' or 'masks'")
        return DatasetCard(
            **texts,
            **lists,
            classes=names,
            counts=counts,
            test_counts=test_counts,
            count_range=self.range("count_range", table["count_range"]) if "count_range" in table else None,
            samples=self.table("samples", table.get("samples", {}), int),
            downloads=self.table("downloads", table.get("downloads", {}), str),
            checksums=self.checksums(table.get("checksums", {})),
            editions=self.editions(table.get("editions", [])),
            image_size=self.count("image_size", table.get("image_size", 224)),
            protocols=protocols,
            default_protocol=default,
            published_splits=self.published_splits(table.get("published_splits", {}), names),
        )

    def text(self, key: str, value: object) -> str:
        if not isinstance(value, str):
            raise self.refuse(f"'{key}' must be a string")
        return value

    def texts(self, key: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.refuse(f"'{key}' must be a list of strings")
        return tuple(value)

    def count(self, key: str, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.refuse(f"'{key}' must be a whole number, 0 or more")
        return value

    def range(self, key: str, value: object) -> tuple[int, int]:
        if not isinstance(value, list) or len(value) != 2:
            raise self.refuse(f"'{key}' must be a list of two whole numbers")
        fewest, most = (self.count(key, item) for item in value)
        if fewest > most:
            raise self.refuse(f"'{key}' must have the smaller number first")
        return fewest, most

    def table(self, key: str, value: object, kind: type) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.refuse(f"'{key}' must be a table")
        for name, item in value.items():
            if not isinstance(item, kind) or isinstance(item, bool):
                raise self.refuse(f"'{key}.{name}' must be {'a whole number' if kind is int else 'a string'}")
        return value

    def classes(self, value: object) -> tuple[tuple[str, ...], tuple[int, ...] | None, tuple[int, ...] | None]:
        if not isinstance(value, list) or not value or not all(isinstance(item, dict) for item in value):
            raise self.refuse("'classes' must be a list of tables with a 'name' and, if known, a 'count'")
        for item in value:
            if unknown := sorted(set(item) - _CLASS_FIELDS):
                raise self.refuse(f"a class has the unknown field '{unknown[0]}'")
        names = tuple(self.text("classes.name", item.get("name")) for item in value)
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise self.refuse(f"class '{twice[0]}' is listed twice")
        return names, self._column(value, "count"), self._column(value, "test_count")

    def _column(self, rows: list[dict[str, Any]], key: str) -> tuple[int, ...] | None:
        if not any(key in row for row in rows):
            return None
        if not all(key in row for row in rows):
            raise self.refuse(f"'{key}' must be given for every class or for none")
        return tuple(self.count(f"classes.{key}", row[key]) for row in rows)

    def checksums(self, value: object) -> dict[str, str]:
        table = self.table("checksums", value, str)
        for name, text in table.items():
            kind, _, digest = text.partition(":")
            if len(digest) != _HASHES.get(kind) or digest.strip("0123456789abcdef"):
                raise self.refuse(f"'checksums.{name}' must be 'md5:<32 hex digits>' or 'sha256:<64 hex digits>'")
        return table

    def editions(self, value: object) -> tuple[Edition, ...]:
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.refuse("'editions' must be a list of tables")
        for item in value:
            if unknown := sorted(set(item) - _EDITION_FIELDS):
                raise self.refuse(f"an edition has the unknown field '{unknown[0]}'")
        return tuple(
            Edition(
                name=self.text("editions.name", item.get("name")),
                place=self.text("editions.place", item.get("place")),
                count=self.count("editions.count", item.get("count")),
                note=self.text("editions.note", item.get("note", "")),
            )
            for item in value
        )

    def protocols(self, value: object, classes: tuple[str, ...]) -> dict[str, CardProtocol]:
        if not isinstance(value, dict):
            raise self.refuse("'protocols' must be a table")
        return {name: self.protocol(name, item, classes) for name, item in value.items()}

    def protocol(self, name: str, item: object, classes: tuple[str, ...]) -> CardProtocol:
        where = f"protocols.{name}"
        if name in GENERIC:
            raise self.refuse(f"'{where}' has the name of a protocol for any dataset; give it another one")
        if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):  # what follows a "+" in a name are changed rules
            raise self.refuse(f"'{where}': a protocol's name has lower-case letters, digits, dots and hyphens only")
        if not isinstance(item, dict):
            raise self.refuse(f"'{where}' must be a table")
        if unknown := sorted(set(item) - _PROTOCOL_FIELDS):
            raise self.refuse(f"'{where}' has the unknown field '{unknown[0]}'")
        if missing := [key for key in ("old_classes", "label_fraction", "citation") if key not in item]:
            raise self.refuse(f"'{where}' lacks '{missing[0]}'")
        return CardProtocol(
            name=name,
            old_classes=self.old_classes(f"{where}.old_classes", item["old_classes"], classes),
            label_fraction=self.share(f"{where}.label_fraction", item["label_fraction"]),
            citation=self.text(f"{where}.citation", item["citation"]),
            note=self.text(f"{where}.note", item.get("note", "")),
        )

    def share(self, key: str, value: object) -> float:
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value <= 1:
            raise self.refuse(f"'{key}' must be a number above 0 and at most 1")
        return float(value)

    def published_splits(self, value: object, classes: tuple[str, ...]) -> dict[str, PublishedSplit]:
        if not isinstance(value, dict):
            raise self.refuse("'published_splits' must be a table")
        return {name: self.published_split(name, item, classes) for name, item in value.items()}

    def published_split(self, name: str, item: object, classes: tuple[str, ...]) -> PublishedSplit:
        where = f"published_splits.{name}"
        if not isinstance(item, dict) or set(item) != set(_SPLIT_FIELDS):
            raise self.refuse(f"'{where}' must be a table with {', '.join(_SPLIT_FIELDS)}")
        count, digest = self.count(f"{where}.old_count", item["old_count"]), item["old_sha256"]
        if not 0 < count < len(classes):
            raise self.refuse(f"'{where}.old_count' must be between 1 and {len(classes) - 1}")
        if not isinstance(digest, str) or not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise self.refuse(f"'{where}.old_sha256' must have 64 hex digits")
        return PublishedSplit(
            name=name,
            old_count=count,
            old_sha256=digest,
            label_fraction=self.share(f"{where}.label_fraction", item["label_fraction"]),
            citation=self.text(f"{where}.citation", item["citation"]),
        )

    def old_classes(self, key: str, value: object, classes: tuple[str, ...]) -> int | tuple[str, ...]:
        if not isinstance(value, list):
            count = self.count(key, value)
            if not 0 < count < len(classes):
                raise self.refuse(f"'{key}' must be between 1 and {len(classes) - 1}, or be a list of class names")
            return count
        numbers = [item for item in value if isinstance(item, int) and not isinstance(item, bool)]
        if other_number := [number for number in numbers if not 0 <= number < len(classes)]:
            raise self.refuse(f"'{key}' has the class {other_number[0]}; numbers are 0 to {len(classes) - 1}")
        names = self.texts(key, [classes[item] if item in numbers else item for item in value])
        if other := [name for name in names if name not in classes]:
            raise self.refuse(f"'{key}' names the class '{other[0]}', which the card does not have")
        if len(set(names)) < len(names) or not 0 < len(names) < len(classes):
            raise self.refuse(f"'{key}' must name at least one class and not all of them, each once")
        return names
