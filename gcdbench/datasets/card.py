"""Dataset cards: what is known about a dataset before any image is read. One ``datasets/<name>/card.toml`` each."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gcdbench.core.errors import DataError

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
    "samples",
    "downloads",
    "checksums",
    "paper",
    "editions",
}
_CLASS_FIELDS = {"name", "count", "test_count"}
_EDITION_FIELDS = {"name", "place", "count", "note"}
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


@dataclass(frozen=True, kw_only=True)
class Edition:
    """A published subset of a dataset that is accepted in its place, for example a fixed number of images a class."""

    name: str
    place: str
    count: int
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class DatasetCard:
    """Facts about a dataset. Unknown facts are left out, never guessed.

    classes: names in the dataset's own order; a sample's label is an index into it.
    counts, test_counts: images a class in the training and in the test part, or None where unknown.
    samples: images in each published part (``train``, ``val``, ``test``), where published.
    places: folders or files (relative to a data root) where the dataset may lie, in order of preference.
    downloads: file name -> public address; checksums: file name -> ``"md5:<hex>"`` or ``"sha256:<hex>"``.
    grouping: what a group is (for example "lesion"), or "" where images are independent as far as is known.
    purpose: ``"classification"``, or ``"masks"`` for sets that only serve to score attention maps.
    paper_old: number of old classes (the first ones in card order) in the protocols of the MedXplore paper, or None.
    """

    name: str
    title: str
    modality: str
    classes: tuple[str, ...]
    licence: str
    citation: str
    source: str
    layout: str
    counts: tuple[int, ...] | None = None
    test_counts: tuple[int, ...] | None = None
    samples: Mapping[str, int] = field(default_factory=dict)
    places: tuple[str, ...] = ()
    downloads: Mapping[str, str] = field(default_factory=dict)
    checksums: Mapping[str, str] = field(default_factory=dict)
    grouping: str = ""
    defects: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    editions: tuple[Edition, ...] = ()
    image_size: int = 224
    purpose: str = "classification"
    paper_old: int | None = None

    @property
    def total(self) -> int | None:
        """Number of images in the complete dataset, or None where unknown."""
        if self.samples:
            return sum(self.samples.values())
        if self.counts is None:
            return None
        return sum(self.counts) + sum(self.test_counts or ())


def datasets_folder() -> Path:
    """The folder with the cards: inside the installed package, or ``datasets/`` of a source checkout."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_datasets", package.parent / "datasets"):
        if folder.is_dir():
            return folder
    raise DataError(
        "The dataset cards are not installed.",
        hint=f"Expected them in {package / '_datasets'}; install gcdbench again.",
    )


def card_path(name: str) -> Path:
    """Where the card of a built-in dataset is."""
    return datasets_folder() / name / "card.toml"


def load_card(path: Path | str) -> DatasetCard:
    """Read and check a card; ``path`` is a file, or the name of a built-in dataset."""
    file = path if isinstance(path, Path) else Path(path) if path.endswith(".toml") else card_path(path)
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"There is no dataset card at {file}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
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
        paper_old = self.table("paper", table.get("paper", {}), int).get("old_classes")
        if paper_old is not None and not 0 < paper_old < len(names):
            raise self.refuse(f"'paper.old_classes' must lie between 1 and {len(names) - 1}")
        if texts.get("purpose", "classification") not in ("classification", "masks"):
            raise self.refuse("'purpose' must be 'classification' or 'masks'")
        return DatasetCard(
            **texts,
            **lists,
            classes=names,
            counts=counts,
            test_counts=test_counts,
            samples=self.table("samples", table.get("samples", {}), int),
            downloads=self.table("downloads", table.get("downloads", {}), str),
            checksums=self.checksums(table.get("checksums", {})),
            editions=self.editions(table.get("editions", [])),
            image_size=self.count("image_size", table.get("image_size", 224)),
            paper_old=paper_old,
        )

    def text(self, key: str, value: object) -> str:
        if not isinstance(value, str):
            raise self.refuse(f"'{key}' must be a text")
        return value

    def texts(self, key: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.refuse(f"'{key}' must be a list of texts")
        return tuple(value)

    def count(self, key: str, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.refuse(f"'{key}' must be a whole number, 0 or more")
        return value

    def table(self, key: str, value: object, kind: type) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.refuse(f"'{key}' must be a table")
        for name, item in value.items():
            if not isinstance(item, kind) or isinstance(item, bool):
                raise self.refuse(f"'{key}.{name}' must be {'a whole number' if kind is int else 'a text'}")
        return value

    def classes(self, value: object) -> tuple[tuple[str, ...], tuple[int, ...] | None, tuple[int, ...] | None]:
        if not isinstance(value, list) or not value or not all(isinstance(item, dict) for item in value):
            raise self.refuse("'classes' must be a list of tables with a 'name' and, where known, a 'count'")
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
