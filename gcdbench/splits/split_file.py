"""Reading, comparing and adopting split manifests that were written elsewhere."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from gcdbench.core.errors import DataError
from gcdbench.core.regular_files import read_regular
from gcdbench.splits.manifest import FORMAT, ROLES, SplitManifest
from gcdbench.splits.protocol import Protocol

_COLUMNS = "id\tsha256\tclass\trole\tgroup"


@dataclass(frozen=True, kw_only=True)
class SplitDifference:
    """How two splits differ; all empty means that they are the same split.

    header: names of header fields that differ; only_left, only_right: images (sha256) that the other does not have;
    roles, classes: images whose role or class differs.
    """

    header: tuple[str, ...] = ()
    only_left: tuple[str, ...] = ()
    only_right: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    groups: bool = False

    @property
    def same(self) -> bool:
        """True when nothing differs."""
        return not (self.header or self.only_left or self.only_right or self.roles or self.classes or self.groups)


def read_split(path: Path) -> SplitManifest:
    """The manifest in a file; a damaged or edited one is refused with the line."""
    try:
        text = read_regular(path).decode("utf-8").replace("\r\n", "\n")  # as Windows writes
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The split '{path}' cannot be read: {error}.") from None
    manifest = parse_split(text, str(path))
    if manifest.to_text() != text:
        raise DataError(
            f"The split '{path}' contradicts itself: its header does not fit its lines.",
            hint="It was edited by hand or by a program; export it again.",
        )
    return manifest


def parse_split(text: str, name: str) -> SplitManifest:
    """The manifest in ``text``; ``name`` is for messages."""
    lines = text.splitlines()
    if len(lines) < 3 or not lines[0].startswith("# ") or lines[1] != _COLUMNS:
        raise DataError(f"'{name}' is not a split manifest: it must begin with a header and the line of columns.")
    try:
        header = json.loads(lines[0][2:])
    except (ValueError, RecursionError) as error:
        raise DataError(f"The header of '{name}' is not JSON: {error}.") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise DataError(f"'{name}' is not in the format {FORMAT}; it may come from another version of gcdbench.")
    rows = [line.split("\t") for line in lines[2:]]
    for number, row in enumerate(rows, start=3):
        if len(row) != 5 or row[0] != str(number - 3) or row[3] not in ROLES or len(row[1]) != 64:
            raise DataError(f"'{name}', line {number}, is not 'id sha256 class role group'.")
    try:
        classes = (*header["old_classes"], *header["new_classes"])
        return SplitManifest(
            dataset=str(header["dataset"]),
            protocol=_protocol(header["protocol"]),
            classes=tuple(map(str, classes)),
            k_old=len(header["old_classes"]),
            sha256=tuple(row[1] for row in rows),
            labels=_in_range(np.array([int(row[2]) for row in rows], dtype=np.int64), len(classes)),
            roles=np.array([ROLES.index(row[3]) for row in rows], dtype=np.int8),
            groups=np.array([int(row[4]) for row in rows], dtype=np.int64),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"The split '{name}' is damaged: {error}.") from None


def compare_splits(left: SplitManifest, right: SplitManifest) -> SplitDifference:
    """What differs between two splits, by image content."""
    a, b = _by_content(left), _by_content(right)
    shared = [key for key in a if key in b]
    one, other = left.header(), right.header()
    return SplitDifference(
        header=tuple(sorted(key for key in {*one, *other} if one.get(key) != other.get(key))),
        only_left=tuple(sha for sha, copy in a if (sha, copy) not in b),
        only_right=tuple(sha for sha, copy in b if (sha, copy) not in a),
        roles=tuple(key[0] for key in shared if a[key][0] != b[key][0]),
        classes=tuple(key[0] for key in shared if a[key][1] != b[key][1]),
        groups=left.sha256 == right.sha256 and not np.array_equal(left.groups, right.groups),
    )


def require_same_images(split: SplitManifest, local: SplitManifest) -> None:
    """Refuse a split that was made for other images, or other labels, than those on this machine."""
    difference = compare_splits(split, local)
    missing, extra, other = len(difference.only_left), len(difference.only_right), len(difference.classes)
    if missing or extra or other:
        raise DataError(
            f"The split is not for the images on this machine: {missing} of its images are not here, "
            f"{extra} images here are not in it, {other} have another class."
        )


def _by_content(split: SplitManifest) -> dict[tuple[str, int], tuple[int, str]]:
    """(sha256, which copy of it) -> (role, class name)."""
    copies: dict[str, int] = {}
    table = {}
    for sha, role, label in zip(split.sha256, split.roles.tolist(), split.labels.tolist(), strict=True):
        copies[sha] = copies.get(sha, -1) + 1
        table[sha, copies[sha]] = (role, split.classes[label])
    return table


def _protocol(table: dict[str, Any]) -> Protocol:
    known = {field.name for field in fields(Protocol)}
    if unknown := sorted(set(table) - known):
        raise ValueError(f"its protocol has the unknown field '{unknown[0]}'")
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    return Protocol(**values)


def _in_range(labels: np.ndarray[tuple[int], np.dtype[np.int64]], count: int) -> Any:
    if len(labels) and not 0 <= labels.min() <= labels.max() < count:
        raise ValueError(f"a class is not between 0 and {count - 1}")
    return labels
