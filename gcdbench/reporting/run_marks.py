"""What a list or a table must say of runs beside their names: data issues they accepted, folders that share a name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from gcdbench.reporting.records import CellRecord

ISSUE_MARK = "§"
"""Stands behind the dataset of runs that were made in spite of known data issues."""
SHOWN_ISSUES = 2


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


def told_apart(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """(dataset, images) -> the dataset's name, with a short digest of its images where several share the name."""
    known = dict.fromkeys(pairs)
    contents: dict[str, set[str]] = {}
    for dataset, images in known:
        # One folder at several sizes has several stores: what they share is the digest of the files.
        contents.setdefault(dataset, set()).add(images)
    return {
        (dataset, images): dataset if len(contents[dataset]) == 1 else f"{dataset}#{_digest(images)}"
        for dataset, images in known
    }


def _digest(images: str) -> str:
    return hashlib.sha256(images.encode()).hexdigest()[:6]
