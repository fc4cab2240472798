"""Sets whose files come with official lists: which image is of which class and in which part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from gcdbench.core.errors import DataError
from gcdbench.core.regular_files import read_regular
from gcdbench.datasets.card import DatasetCard
from gcdbench.datasets.source import DatasetSource, Remark
from gcdbench.datasets.sources.walk import FileReader, FoundFile, IgnoredFile, file_stamp, fingerprint, found_file


@dataclass(frozen=True, kw_only=True)
class Listed:
    """One line of an official list: the file (relative to the root), the index of its class, and its part.

    place: where it stands, for messages.
    """

    file: str
    label: int
    part: str
    place: str


def from_lists(
    root: Path, card: DatasetCard, listed: Sequence[Listed], lists: Sequence[Path], *, remarks: tuple[Remark, ...] = ()
) -> DatasetSource:
    """The dataset that official lists describe. Files that are not there are left out and named by the audit.

    ``lists`` are the files that the lines come from: when one changes, everything is read again.
    """
    _refuse_strange_files(listed)
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


def _refuse_strange_files(listed: Sequence[Listed]) -> None:
    """Each line names a file of its own, inside the dataset's folder: else a list would read what is not part of it."""
    seen: dict[str, str] = {}
    for line in listed:
        path = PurePosixPath(line.file)
        if "\0" in line.file or ".." in path.parts or path.is_absolute() or str(path) != line.file:
            raise DataError(
                f"{line.place}, names '{line.file}', which is not a file inside the dataset's folder.",
                hint="The list is damaged or was changed: unpack the archive again.",
            )
        first = seen.setdefault(line.file, line.place)
        if first != line.place:
            raise DataError(
                f"{line.place}, names '{line.file}' again: it is in {first}.",
                hint="One of the lists was copied or changed: unpack the archive again.",
            )


def read_lines(file: Path) -> list[tuple[int, str]]:
    """The lines of a list with their numbers, from 1 on, without empty ones."""
    try:
        text = read_regular(file).decode("utf-8")
    except OSError as error:
        raise DataError(
            f"{file} cannot be read: {error.strerror or error}.", hint="Unpack the whole archive; its lists are needed."
        ) from None
    except UnicodeDecodeError:
        raise DataError(f"{file} is not a text file.", hint="It may be damaged: unpack the archive again.") from None
    return [(number, line.strip()) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]


@dataclass(frozen=True, kw_only=True)
class Numbered:
    """A list of ``<number> <text>`` lines: the texts by their numbers, and the line of each."""

    texts: dict[str, str]
    lines: dict[str, int]


def numbered(file: Path) -> Numbered:
    """Read such a list; each number may stand there once."""
    texts: dict[str, str] = {}
    lines: dict[str, int] = {}
    for position, line in read_lines(file):
        number, _, text = line.partition(" ")
        if not number.isdecimal() or not text or number in texts:
            raise DataError(f"{file}, line {position}, is not '<number> <text>' with a number of its own: '{line}'.")
        texts[number], lines[number] = text.strip(), position
    return Numbered(texts=texts, lines=lines)


def require_classes(
    file: Path, names: Sequence[str], card: DatasetCard, alike: Callable[[str], str] = lambda name: name
) -> None:
    """Refuse a copy whose list of classes is not the card's, in its order; ``alike`` is applied to names first."""
    if [alike(name) for name in names] == [alike(name) for name in card.classes]:
        return
    different = [(mine, want) for mine, want in zip(names, card.classes, strict=False) if alike(mine) != alike(want)]
    first = f", and '{different[0][0]}' instead of '{different[0][1]}'" if different else ""
    raise DataError(
        f"{file} does not list the {len(card.classes)} classes of '{card.name}': it has {len(names)}{first}.",
        hint="It is of another edition, or damaged; use class folders as folder:<path>.",
    )
