"""What a model says about images, as columns; for people as rows of a CSV file or as a pandas frame."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.arrays import IntArray
from gcdbench.core.errors import ConfigError
from gcdbench.models.model_card import Names

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]

COLUMNS = (
    "path",
    "cluster",
    "name",
    "kind",
    "confidence",
    "nearest_known_class",
    "likeness",
    "unlike",
    "unlike_score",
)
"""Columns of a predictions file, in order."""


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """N images.

    path: what each image is called. cluster: (N,) its cluster; confidence: (N,) the head's, in (0, 1].
    nearest: (N,) the known class whose labelled training images its feature resembles most, by the cosine ``likeness``
    to their mean; −1 and NaN where the model knows no class. unlike_score: (N,) distance from the training images, in
    units of the threshold; unlike: (N,) whether it is above 1. NaN and False where the model cannot tell.
    embedding: (N, C) features, only where they were asked for.
    unreadable: path and reason of the images that were left out.
    """

    path: tuple[str, ...]
    cluster: IntArray
    confidence: Floats
    nearest: IntArray
    likeness: Floats
    unlike_score: Floats
    unlike: Flags
    names: Names
    embedding: Floats | None = None
    unreadable: tuple[tuple[str, str], ...] = ()

    def __len__(self) -> int:
        return len(self.path)

    @property
    def name(self) -> list[str]:
        """The name of each image's cluster: its known class, the name it was given, or ``cluster 5``."""
        table = [self.names.of_cluster(cluster) for cluster in range(len(self.names.known))]
        return [table[cluster] for cluster in self.cluster.tolist()]

    @property
    def kind(self) -> list[str]:
        """``known``, ``new``, or ``rejected`` where somebody found the cluster to be no class."""
        table = ["known" if self.names.is_known(cluster) else "new" for cluster in range(len(self.names.known))]
        for cluster in self.names.rejected:
            table[cluster] = "rejected"
        return [table[cluster] for cluster in self.cluster.tolist()]

    @property
    def nearest_class(self) -> list[str]:
        """The name of each image's nearest known class; "" where there is none."""
        return [self.names.of_class(number) if number >= 0 else "" for number in self.nearest.tolist()]

    def rows(self) -> Iterator[dict[str, object]]:
        """One dictionary per image, with the keys of :data:`COLUMNS`; None where the model cannot tell."""
        columns = (
            self.path,
            self.cluster.tolist(),
            self.name,
            self.kind,
            self.confidence.tolist(),
            self.nearest_class,
            self.likeness.tolist(),
            self.unlike.tolist(),
            self.unlike_score.tolist(),
        )
        for values in zip(*columns, strict=True):
            row: dict[str, object] = dict(zip(COLUMNS, values, strict=True))
            if np.isnan(self.unlike_score).all():
                row["unlike"] = row["unlike_score"] = None
            if np.isnan(values[COLUMNS.index("confidence")]):
                row["confidence"] = None
            if row["nearest_known_class"] == "":
                row["likeness"] = None
            yield row

    def to_frame(self) -> pd.DataFrame:
        """One row per image, with the columns of a predictions file."""
        import pandas as pd

        return pd.DataFrame(list(self.rows()), columns=list(COLUMNS))


def join(parts: Sequence[Predictions], names: Names, unreadable: tuple[tuple[str, str], ...] = ()) -> Predictions:
    """Several answers as one, in order."""
    embeddings = [part.embedding for part in parts if part.embedding is not None]
    whole, real, flag = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32), np.empty(0, dtype=np.bool_)
    return Predictions(
        path=tuple(path for part in parts for path in part.path),
        cluster=np.concatenate([whole, *(part.cluster for part in parts)]),
        confidence=np.concatenate([real, *(part.confidence for part in parts)]),
        nearest=np.concatenate([whole, *(part.nearest for part in parts)]),
        likeness=np.concatenate([real, *(part.likeness for part in parts)]),
        unlike_score=np.concatenate([real, *(part.unlike_score for part in parts)]),
        unlike=np.concatenate([flag, *(part.unlike for part in parts)]),
        names=names,
        embedding=np.concatenate(embeddings) if embeddings else None,
        unreadable=tuple(entry for part in parts for entry in part.unreadable) + unreadable,
    )


class CsvWriter:
    """Writes predictions to an open file as they come; the header is there from the beginning."""

    def __init__(self, file: TextIO) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        self._writer.writerow(COLUMNS)

    def write(self, predictions: Predictions) -> None:
        """Add the rows of ``predictions``."""
        for row in predictions.rows():
            self._writer.writerow([_cell(column, row[column]) for column in COLUMNS])


@contextmanager
def open_whole(path: Path) -> Iterator[TextIO]:
    """A file that gets its name when the block ends well: nobody finds half of a table."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise ConfigError(
            f"Cannot write to '{path.parent}': {error.strerror or error}.", hint="Choose another place."
        ) from error
    try:
        # Names of files need not be text in any encoding; they are written as the bytes they are.
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            yield file
        os.chmod(name, 0o644)
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


def is_table(path: Path) -> bool:
    """Whether a file begins as one that :class:`CsvWriter` wrote."""
    with path.open("rb") as file:
        return file.readline().strip() == ",".join(COLUMNS).encode()


def write_csv(parts: Iterable[Predictions], file: TextIO) -> None:
    """Write a whole series of predictions."""
    writer = CsvWriter(file)
    for predictions in parts:
        writer.write(predictions)


def _cell(column: str, value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str) and column != "path" and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"  # a spreadsheet would compute it; paths stay what they are, so that they can be opened
    return value
