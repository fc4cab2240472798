"""What lists and tables must say about runs: data issues they accepted, folders that share a name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Protocol

from gcdbench.reporting.records import CellRecord

ISSUE_MARK = "§"
"""Follows the name of the dataset of runs that were made in spite of known data issues."""
SHOWN_ISSUES = 2


class OnImages(Protocol):
    """A run, as far as it says on which images it was made."""

    @property
    def dataset(self) -> str:
        """The dataset's name."""

    @property
    def images(self) -> str:
        """Key of its image store."""

    @property
    def image_size(self) -> int:
        """Side of the stored images."""


def issue_notes(records: Sequence[CellRecord]) -> list[str]:
    """One sentence per dataset with accepted data issues: how many, and the first ones by name."""
    issues: dict[str, dict[str, None]] = {}
    for record in records:
        if record.accepted_data_issues:
            issues.setdefault(record.dataset, {}).update(dict.fromkeys(record.accepted_data_issues))
    notes = []
    for dataset, found in sorted(issues.items()):
        left = len(found) - SHOWN_ISSUES
        more = f"; and {left} more, which 'gcdbench show' lists" if left > 0 else ""
        named = "; ".join(list(found)[:SHOWN_ISSUES])
        notes.append(f"{ISSUE_MARK} Runs on {dataset} accepted {len(found)} known data issue(s): {named}{more}.")
    return notes


def told_apart(records: Iterable[OnImages]) -> dict[tuple[str, str], str]:
    """(dataset, images) -> the dataset's name, with a short digest of its images where other images share the name.

    The same images at another size are stored apart as well, so only those of one size are compared.
    """
    stores: dict[str, dict[int, set[str]]] = {}
    for record in records:
        if record.images:  # not known of a run that cannot be read
            stores.setdefault(record.dataset, {}).setdefault(record.image_size, set()).add(record.images)
    return {
        (dataset, images): dataset if max(map(len, sizes.values())) == 1 else f"{dataset}#{_digest(images)}"
        for dataset, sizes in stores.items()
        for found in sizes.values()
        for images in found
    }


def _digest(images: str) -> str:
    return hashlib.sha256(images.encode()).hexdigest()[:6]
