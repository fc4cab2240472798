"""Dataset cards: what is known about a dataset before any image is read. One ``datasets/<name>/card.toml`` each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gcdbench.core.errors import DataError


@dataclass(frozen=True, kw_only=True)
class Edition:
    """A published subset of a dataset that is accepted in its place, for example a fixed number of images per class."""

    name: str
    place: str
    count: int
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class CardProtocol:
    """A protocol that somebody published for this dataset.

    old_classes: how many classes are old, the first ones in the card's order, or which, by name
        (the file may give their numbers from 0 instead).
    citation: who published it. note: what of it is not stated there but assumed.
    """

    name: str
    old_classes: int | tuple[str, ...]
    label_fraction: float
    citation: str
    note: str = ""

    @property
    def old_count(self) -> int:
        """Number of old classes."""
        return self.old_classes if isinstance(self.old_classes, int) else len(self.old_classes)


@dataclass(frozen=True, kw_only=True)
class PublishedSplit:
    """A published list of old classes that is not on the card itself: what a file must hold to go by its name.

    old_count: how many classes it calls old. label_fraction: their labelled share.
    old_sha256: of their positions in the card's order: ascending, decimal, with commas between.
    """

    name: str
    old_count: int
    old_sha256: str
    label_fraction: float
    citation: str


@dataclass(frozen=True, kw_only=True)
class DatasetCard:
    """Facts about a dataset. Unknown facts are left out, never guessed.

    classes: names in the dataset's own order; a sample's label is an index into it.
    counts, test_counts: images per class in the training and in the test part, or None where unknown.
    count_range: fewest and most training images of a class, where only these are published.
    samples: images in each published part (``train``, ``val``, ``test``), where published.
    places: folders or files (relative to a data root) where the dataset may be, in order of preference.
    downloads: file name -> public address; checksums: file name -> ``"md5:<hex>"`` or ``"sha256:<hex>"``.
    grouping: what a group is (for example "lesion"), or "" where images are independent as far as is known.
    purpose: ``"classification"``, or ``"masks"`` for sets that only serve to score attention maps.
    protocols: what the literature defines on this dataset, by name, in addition to the rules that fit any dataset.
    default_protocol: the one that is meant where none is named.
    published_splits: lists of old classes that a user imports, by the name that only they may have.
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
    count_range: tuple[int, int] | None = None
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
    protocols: Mapping[str, CardProtocol] = field(default_factory=dict)
    default_protocol: str = "half"
    published_splits: Mapping[str, PublishedSplit] = field(default_factory=dict)

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
    from gcdbench.datasets.card_reader import read_card

    return read_card(path if isinstance(path, Path) else Path(path) if path.endswith(".toml") else card_path(path))
