"""Sets whose files come with official lists: which image is of which class and in which part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gcdbench.core.errors import DataError
from gcdbench.core.regular_files import read_regular
from gcdbench.datasets.card import DatasetCard
from gcdbench.datasets.source import DatasetSource, Remark
from gcdbench.datasets.sources.walk import FileReader, FoundFile, IgnoredFile, file_stamp, fingerprint, found_file


@dataclass(frozen=True, kw_only=True)
class Listed:
    """One line of an official list: the file (relative to the root), the index of its class, and its part."""

    file: str
    label: int
    part: str


def from_lists(
    root: Path, card: DatasetCard, listed: Sequence[Listed], lists: Sequence[Path], *, remarks: tuple[Remark, ...] = ()
) -> DatasetSource:
    """The dataset that official lists describe. Files that are not there are left out and named by the audit.

    ``lists`` are the files that the lines come from: when one changes, everything is read again.
    """
    found: list[FoundFile] = []
    here: list[Listed] = []
    absent: list[IgnoredFile] = []
    for line in listed:
        try:
            found.append(found_file(root, line.file))
            here.append(line)
        except OSError as error:
            reason = f"listed, but cannot be read ({error.strerror or error})"
            absent.append(IgnoredFile(key=line.file, reason=reason))
    if not found:
        raise DataError(f"{root} has the lists of '{card.name}' but none of its images.", hint=f"Layout: {card.layout}")
    return DatasetSource(
        card=card,
        keys=tuple(line.file for line in here),
        labels=np.array([line.label for line in here], dtype=np.int64),
        raw=FileReader(
            root=str(root),
            names=tuple(line.file for line in here),
            ignored=tuple(absent),
            size=sum(entry.size for entry in found),
        ),
        partition=np.array([line.part for line in here]),
        location=str(root),
        fingerprint=fingerprint(root, found, *(file_stamp(file) for file in lists)),
        remarks=remarks,
    )


def read_lines(file: Path) -> list[str]:
    """The lines of a list, without empty ones."""
    try:
        text = read_regular(file).decode("utf-8")
    except OSError as error:
        raise DataError(
            f"{file} cannot be read: {error.strerror or error}.", hint="Unpack the whole archive; its lists are needed."
        ) from None
    except UnicodeDecodeError:
        raise DataError(f"{file} is not a text file.", hint="It may be damaged: unpack the archive again.") from None
    return [line.rstrip("\r") for line in text.split("\n") if line.strip()]


def numbered(file: Path) -> dict[str, str]:
    """A list of ``<number> <text>`` lines."""
    table: dict[str, str] = {}
    for position, line in enumerate(read_lines(file), start=1):
        number, _, text = line.strip().partition(" ")
        if not number.isdecimal() or not text or number in table:
            raise DataError(f"{file}, line {position}, is not '<number> <text>' with a number of its own: '{line}'.")
        table[number] = text.strip()
    return table


def require_classes(
    file: Path, names: Sequence[str], card: DatasetCard, alike: Callable[[str], str] = lambda name: name
) -> None:
    """Refuse a copy whose list of classes is not the card's, in its order; ``alike`` is applied to names first."""
    if [alike(name) for name in names] == [alike(name) for name in card.classes]:
        return
    first = next(
        (f"'{mine}' instead of '{want}'" for mine, want in zip(names, card.classes, strict=False) if mine != want),
        "no other",
    )
    raise DataError(
        f"{file} does not list the {len(card.classes)} classes of '{card.name}': it has {len(names)}, first {first}.",
        hint="It is of another edition, or damaged; use class folders as folder:<path>.",
    )
