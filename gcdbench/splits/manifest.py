"""Split manifests: which image is labelled, unlabelled or test, in a file two laboratories can compare byte for byte.

Every draw is an order by hash of (split seed, image content), so a split depends on nothing but the images,
their classes and groups: not on file names, not on the platform, not on the version of a random generator.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.core.errors import DataError
from gcdbench.core.identity import canonical_json
from gcdbench.images.image_set import ImageSet
from gcdbench.splits.data import GCDData
from gcdbench.splits.protocol import Protocol

FORMAT = "gcdbench-split/1"
LABELLED, UNLABELLED, TEST = "labelled", "unlabelled", "test"
ROLES = (LABELLED, UNLABELLED, TEST)


@dataclass(frozen=True, kw_only=True)
class SplitManifest:
    """One split of one dataset. Arrays are ordered by sample id (row of the image store).

    classes: names, old ones first, each part in the card's order; labels: (N,) index into ``classes``, −1 where nobody
    knows the class, as in a discovery;
    roles: (N,) index into ``ROLES``; groups: (N,) number of the sample's group (its own number without groups).
    """

    dataset: str
    protocol: Protocol
    classes: tuple[str, ...]
    k_old: int
    sha256: tuple[str, ...]
    labels: IntArray
    roles: NDArray[np.int8]
    groups: IntArray

    @property
    def is_old(self) -> NDArray[np.bool_]:
        """(C,) one flag for each class."""
        return np.arange(len(self.classes)) < self.k_old

    def ids(self, role: str) -> IntArray:
        """Sample ids with this role, ascending."""
        return np.flatnonzero(self.roles == ROLES.index(role)).astype(np.int64)

    @property
    def old_share(self) -> float:
        """w: the old classes' share of D_u; not a number where it is not known."""
        hidden = self.labels[self.ids(UNLABELLED)]
        return float(np.mean(hidden < self.k_old)) if len(hidden) and hidden.min() >= 0 else float("nan")

    def data(self, store: Pixels) -> GCDData:
        """What a method may see: no label of an unlabelled image is reachable from it."""
        labelled = self.ids(LABELLED)
        return GCDData(
            labelled=ImageSet(ids=labelled, store=store),
            labels=self.labels[labelled].copy(),
            unlabelled=ImageSet(ids=self.ids(UNLABELLED), store=store),
        )

    def header(self) -> dict[str, Any]:
        """The card of the split: protocol, classes, sizes and w."""
        return {
            "format": FORMAT,
            "dataset": self.dataset,
            "protocol": self.protocol.card(),
            "old_classes": list(self.classes[: self.k_old]),
            "new_classes": list(self.classes[self.k_old :]),
            "counts": {role: int(np.sum(self.roles == i)) for i, role in enumerate(ROLES)},
            "old_share_of_unlabelled": None if np.isnan(self.old_share) else round(self.old_share, 6),
        }

    def to_text(self) -> str:
        """The manifest as a file: a JSON header line, then one line per sample: id, sha256, class, role, group."""
        out = io.StringIO()
        out.write("# " + canonical_json(self.header()) + "\n")
        out.write("id\tsha256\tclass\trole\tgroup\n")
        out.writelines(
            f"{i}\t{sha}\t{label}\t{ROLES[role]}\t{group}\n"
            for i, (sha, label, role, group) in enumerate(
                zip(self.sha256, self.labels.tolist(), self.roles.tolist(), self.groups.tolist(), strict=True)
            )
        )
        return out.getvalue()

    @cached_property
    def sha(self) -> str:
        """sha256 of :meth:`to_text`; part of every run's identity."""
        return hashlib.sha256(self.to_text().encode()).hexdigest()


def _draw_order(seed: int, contents: Sequence[str]) -> IntArray:
    """A permutation that depends on the seed and on the contents only."""
    keys = [hashlib.sha256(f"{seed}/{content}".encode()).digest() for content in contents]
    return np.asarray(sorted(range(len(keys)), key=lambda i: (keys[i], i)), dtype=np.int64)


def _labelled_target(count: int, fraction: float) -> int:
    """Number of labelled images of a class: rounded half up, and at least one."""
    return min(count, max(1, int(np.floor(count * fraction + 0.5))))


def _choose_single(order: IntArray, strata: IntArray, targets: IntArray) -> NDArray[np.bool_]:
    """The first ``targets[s]`` samples of each stratum in draw order; ``order`` and the result index candidates."""
    chosen = np.zeros(len(order), dtype=np.bool_)
    for stratum, target in enumerate(targets):
        members = order[strata[order] == stratum]
        chosen[members[:target]] = True
    return chosen


def _choose_groups(order: IntArray, counts: IntArray, targets: IntArray) -> NDArray[np.bool_]:
    """Take whole groups, in draw order, as long as each brings the labelled counts nearer to ``targets``.

    counts: (G, strata) candidates of each group in each stratum.
    """
    chosen = np.zeros(len(counts), dtype=np.bool_)
    missing = targets.astype(np.int64).copy()
    for group in order:
        after = missing - counts[group]
        if np.abs(after).sum() < np.abs(missing).sum():
            chosen[group], missing = True, after
    return chosen


def make_split(
    *,
    dataset: str,
    class_names: Sequence[str],
    labels: IntArray,
    sha256: Sequence[str],
    protocol: Protocol,
    partition: NDArray[np.str_] | None = None,
    groups: NDArray[np.str_] | None = None,
) -> SplitManifest:
    """Split a dataset. All arrays are in id order; ``labels`` index ``class_names`` in the card's order."""
    n = len(labels)
    if n == 0:
        raise DataError(f"Dataset '{dataset}' has no images to split.")
    is_test = np.zeros(n, dtype=np.bool_) if partition is None else np.asarray(partition == "test")
    train_counts = np.bincount(labels[~is_test], minlength=len(class_names))
    old = protocol.old_classes(train_counts.tolist(), class_names)
    new = tuple(c for c in range(len(class_names)) if c not in old)
    position = np.empty(len(class_names), dtype=np.int64)
    position[list(old + new)] = np.arange(len(class_names))
    remapped = position[labels]

    group_numbers = np.arange(n, dtype=np.int64)
    if groups is not None:
        _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
        # Numbered by first appearance in id order, so that group names leave no trace.
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        group_numbers = rank[inverse]

    candidates = np.flatnonzero(~is_test & (remapped < len(old)))
    if len(candidates) == 0:
        raise DataError(f"Dataset '{dataset}' has no training image of an old class under protocol '{protocol.name}'.")
    strata = remapped[candidates] if protocol.stratified else np.zeros(len(candidates), dtype=np.int64)
    sizes = np.bincount(strata, minlength=len(old) if protocol.stratified else 1)
    empty = [class_names[old[s]] for s in np.flatnonzero(sizes == 0)]
    if empty:
        raise DataError(f"Dataset '{dataset}' has no training image of the old class '{empty[0]}'.")
    targets = np.asarray([_labelled_target(int(size), protocol.label_fraction) for size in sizes], dtype=np.int64)

    roles = np.full(n, ROLES.index(UNLABELLED), dtype=np.int8)
    roles[is_test] = ROLES.index(TEST)
    if groups is None or not protocol.keep_groups:
        order = _draw_order(protocol.split_seed, [sha256[i] for i in candidates.tolist()])
        roles[candidates[_choose_single(order, strata, targets)]] = ROLES.index(LABELLED)
    else:
        # A group with a new-class or test image stays out of the labelled side as a whole.
        barred = np.unique(group_numbers[is_test | (remapped >= len(old))])
        free = ~np.isin(group_numbers[candidates], barred)
        members, member_group = np.unique(group_numbers[candidates[free]], return_inverse=True)
        counts = np.zeros((len(members), len(targets)), dtype=np.int64)
        np.add.at(counts, (member_group, strata[free]), 1)
        first_content: dict[int, str] = {}
        for group, row in zip(member_group.tolist(), candidates[free].tolist(), strict=True):
            first_content.setdefault(group, sha256[row])
        order = _draw_order(protocol.split_seed, [first_content[g] for g in range(len(members))])
        taken = _choose_groups(order, counts, targets)
        roles[candidates[free][taken[member_group]]] = ROLES.index(LABELLED)
        without = [class_names[old[s]] for s in np.flatnonzero(counts[taken].sum(axis=0) == 0)]
        if protocol.stratified and without:
            raise DataError(
                f"Dataset '{dataset}': keeping groups together leaves the old class '{without[0]}' without a label.",
                hint="Use another split seed, or --set protocol.keep_groups=false together with --accept-data-issues.",
            )
    if not (roles == ROLES.index(UNLABELLED)).any():
        raise DataError(
            f"Dataset '{dataset}': protocol '{protocol.name}' leaves no image without a label.",
            hint="Then there is nothing to discover: label fewer images, or use fewer old classes.",
        )
    return SplitManifest(
        dataset=dataset,
        protocol=protocol,
        classes=tuple(class_names[c] for c in old + new),
        k_old=len(old),
        sha256=tuple(sha256),
        labels=remapped,
        roles=roles,
        groups=group_numbers,
    )
