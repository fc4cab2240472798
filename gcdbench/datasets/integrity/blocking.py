"""The faults that make a score meaningless, found from names and hashes alone, so that every run can afford it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.arrays import IntArray
from gcdbench.datasets.integrity.counts import count_findings
from gcdbench.datasets.source import UNKNOWN, DatasetSource
from gcdbench.datasets.sources.records import RecordReader
from gcdbench.datasets.sources.walk import FileReader
from gcdbench.images.image_store import ImageStore

_SHOWN = 3


def blocking_issues(source: DatasetSource, store: ImageStore, roles: NDArray[np.str_]) -> list[str]:
    """Sentences about faults that must stop a run: one image in two classes, one group in two roles, a partial copy.

    roles: (N,) "labelled", "unlabelled" or "test" of each row of the store; "" for rows that are not used.
    """
    used = np.asarray(roles) != ""
    labels = source.labels[store.order]
    keys = source.keys
    issues = _wrong_counts(source) if isinstance(source.raw, (FileReader, RecordReader)) else []
    _, content = np.unique(np.asarray(store.sha256), return_inverse=True)
    told = used & (labels != UNKNOWN)
    for rows in mixed(content[told], labels[told]):
        members = store.order[np.flatnonzero(told)[rows]]
        where = _listed([f"{keys[i]} ({class_name(source, i)})" for i in members])
        issues.append(f"the same image is in several classes: {where}")
    if source.groups is not None:
        names = source.groups[store.order]
        _, group = np.unique(names, return_inverse=True)
        for rows in mixed(group[used], np.unique(roles[used], return_inverse=True)[1]):
            members = np.flatnonzero(used)[rows]
            parts = ", ".join(sorted(set(roles[members].tolist())))
            issues.append(f"group {names[members[0]]} is in several roles: {parts}")
    return issues


def class_name(source: DatasetSource, index: int) -> str:
    """Name of a sample's class, for messages."""
    label = int(source.labels[index])
    return "no class" if label == UNKNOWN else source.card.classes[label]


def _wrong_counts(source: DatasetSource) -> list[str]:
    """A copy with other counts than the card's is partial, or another dataset."""
    return [finding.message for finding in count_findings(source) if finding.level == "error"]


def mixed(group: IntArray, value: IntArray) -> list[IntArray]:
    """Positions of the members of each group that holds more than one value.

    group, value: (N,) integers. Vectorised up to the offending groups, which are few.
    """
    if len(group) == 0:
        return []
    count = int(group.max()) + 1
    lowest = np.full(count, np.iinfo(np.int64).max)
    highest = np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(lowest, group, value)
    np.maximum.at(highest, group, value)
    offending = np.flatnonzero(lowest < highest)
    return members_of(group, offending)


def members_of(group: IntArray, wanted: IntArray) -> list[IntArray]:
    """Positions of the members of each of the ``wanted`` groups, in the order of ``wanted`` (which is ascending)."""
    if len(wanted) == 0:
        return []
    order = np.argsort(group, kind="stable")
    ranked = group[order]
    starts = np.searchsorted(ranked, wanted, side="left")
    ends = np.searchsorted(ranked, wanted, side="right")
    return [order[start:end] for start, end in zip(starts, ends, strict=True)]


def _listed(items: Sequence[str]) -> str:
    rest = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return ", ".join(items[:_SHOWN]) + rest
