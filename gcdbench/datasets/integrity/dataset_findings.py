"""``gcdbench data audit``: what is wrong with a dataset, whether a card exists or not. Reads only."""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.arrays import IntArray
from gcdbench.core.errors import GCDBenchError
from gcdbench.core.work import Progress
from gcdbench.datasets.integrity.blocking import class_name, mixed
from gcdbench.datasets.integrity.duplicates import exact_groups, near_groups
from gcdbench.datasets.integrity.images import blank_images, ignored_files, odd_modes, odd_sizes, unreadable_images
from gcdbench.datasets.integrity.leaks import find_leak
from gcdbench.datasets.integrity.report import Finding, Level, Report
from gcdbench.datasets.integrity.scan import Scan, scan_images
from gcdbench.datasets.integrity.truth import require_truth
from gcdbench.datasets.source import UNKNOWN, DatasetSource
from gcdbench.images.hashing import content_order, hex_digests
from gcdbench.splits.manifest import ROLES, make_split
from gcdbench.splits.protocol import Protocol

IMBALANCE = 10.0
"""Ratio of the largest to the smallest class above which it is worth a note."""

Roles = NDArray[np.str_]


def find_faults(source: DatasetSource, protocol: Protocol, *, workers: int, progress: Progress | None = None) -> Report:
    """Look at every image and report what a user of the dataset should know."""
    began = time.perf_counter()
    scan = scan_images(source, workers=workers, progress=progress)
    findings: list[Finding] = []
    try:
        roles = split_roles(source, scan, protocol)
    except GCDBenchError as error:
        roles = np.full(len(source), "", dtype="<U10")
        findings.append(Finding(level="note", kind="split", message=f"Roles were not checked: {error.message}"))
    findings += unreadable_images(source, scan)
    findings += duplicate_findings(source, scan, roles)
    findings += group_findings(source, roles)
    findings += odd_modes(source, scan, "warning")
    findings += odd_sizes(source, scan)
    findings += blank_images(source, scan)
    findings += ignored_files(source)
    findings += remarks(source)
    findings += imbalance(source)
    facts = {
        "classes": dict(zip(source.card.classes, source.class_counts, strict=True)),
        "roles": {role: int(np.sum(roles == role)) for role in ROLES} | {"by protocol": protocol.name},
        "seconds": round(time.perf_counter() - began, 1),
    }
    return Report(
        check="audit",
        dataset=source.card.name,
        location=source.location,
        images=len(source),
        findings=tuple(findings),
        facts=facts,
    )


def split_roles(source: DatasetSource, scan: Scan, protocol: Protocol) -> Roles:
    """(N,) role of each sample, in the source's order, under ``protocol``."""
    require_truth(source)
    order = content_order(scan.digests, source.labels, source.keys)
    split = make_split(
        dataset=source.card.name,
        class_names=source.card.classes,
        labels=source.labels[order],
        sha256=hex_digests(scan.digests[order]),
        protocol=protocol,
        partition=None if source.partition is None else source.partition[order],
        groups=None if source.groups is None else source.groups[order],
    )
    roles = np.empty(len(source), dtype="<U10")
    roles[order] = np.asarray(ROLES)[split.roles]
    return roles


def duplicate_findings(source: DatasetSource, scan: Scan, roles: Roles) -> Iterable[Finding]:
    """Equal and nearly equal images: within a class, across classes, across roles."""
    # Empty files are all equal, and flat images all look alike: both are reported as what they are.
    seen = np.flatnonzero(scan.readable)
    exact = [seen[group] for group in exact_groups(scan.digests[seen])]
    patterned = seen[scan.contrast[seen] >= 1.0]
    near = [patterned[group] for group in near_groups(scan.perceptual[patterned])]
    near = [group for group in near if len(np.unique(scan.digests[group], axis=0)) > 1]
    yield from _sorted_by_class(source, exact, "exact", "exact duplicates", "error")
    yield from _sorted_by_class(source, near, "near", "nearly equal images", "warning")
    for kind, groups in (("exact", exact), ("near", near)):
        crossing = [group for group in groups if len(set(roles[group].tolist())) > 1]
        if crossing:
            yield Finding(
                level="warning",
                kind=f"{kind}-across-roles",
                message=f"{len(crossing)} groups of {kind} duplicates are in several roles",
                groups=tuple(tuple(f"{source.keys[i]} ({roles[i]})" for i in group) for group in crossing),
            )
    leak = find_leak(hex_digests(scan.digests), np.where(scan.readable, roles, ""))
    if len(leak):
        message = (
            f"{len(leak)} test images are byte for byte copies of labelled ones, so a score on the test part counts "
            "them"
        )
        yield Finding(level="warning", kind="test-as-labelled", message=message, groups=leak.pairs(source.keys))


def _sorted_by_class(
    source: DatasetSource, groups: list[IntArray], kind: str, name: str, across_level: Level
) -> Iterable[Finding]:
    # An image of unknown class contradicts no other.
    across = [group for group in groups if len(set(source.labels[group].tolist()) - {UNKNOWN}) > 1]
    within = [group for group in groups if len(set(source.labels[group].tolist()) - {UNKNOWN}) <= 1]
    if across:
        yield Finding(
            level=across_level,
            kind=f"{kind}-across-classes",
            message=f"{len(across)} groups of {name} in more than one class",
            groups=tuple(tuple(f"{source.keys[i]} ({class_name(source, i)})" for i in group) for group in across),
        )
    if within:
        yield Finding(
            level="warning",
            kind=f"{kind}-within-class",
            message=f"{len(within)} groups of {name} within a class",
            groups=tuple(tuple(source.keys[i] for i in group) for group in within),
        )


def group_findings(source: DatasetSource, roles: Roles) -> Iterable[Finding]:
    """Patients or lesions that a split has torn apart."""
    if source.groups is None:
        if source.card.grouping:
            message = f"The card names a grouping ({source.card.grouping}), but this copy has no group names"
            yield Finding(level="warning", kind="groups", message=message)
        return
    _, group = np.unique(source.groups, return_inverse=True)
    torn = mixed(group, np.unique(roles, return_inverse=True)[1].astype(np.int64))
    if torn:
        yield Finding(
            level="error",
            kind="groups-across-roles",
            message=f"{len(torn)} groups ({source.card.grouping or 'patients or lesions'}) are in several roles",
            groups=tuple(tuple(f"{source.keys[i]} ({roles[i]})" for i in members) for members in torn),
        )


def remarks(source: DatasetSource) -> Iterable[Finding]:
    """What was reported when the dataset was opened, and how many images have no class."""
    for remark in source.remarks:
        yield Finding(level=remark.level, kind=remark.kind, message=remark.message)
    if unknown := int(np.sum(source.labels == UNKNOWN)):
        yield Finding(level="note", kind="unlabelled", message=f"{unknown:,} images have no class")


def imbalance(source: DatasetSource) -> Iterable[Finding]:
    """Empty classes and very unequal ones."""
    counts = np.asarray(source.class_counts)
    if not counts.any():
        return
    for name in np.asarray(source.card.classes)[counts == 0]:
        yield Finding(level="error", kind="empty-class", message=f"class {name} has no images")
    smallest, largest = int(counts[counts > 0].min()), int(counts.max())
    if largest > IMBALANCE * smallest:
        message = f"classes are imbalanced: {smallest:,} images in the smallest, {largest:,} in the largest"
        yield Finding(level="note", kind="imbalance", message=message)
