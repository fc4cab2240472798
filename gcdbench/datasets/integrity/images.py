"""Findings about single images: files that cannot be read, odd modes and sizes, blank ones, and other files."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gcdbench.datasets.integrity.report import Finding, Level, single
from gcdbench.datasets.integrity.scan import Scan
from gcdbench.datasets.source import DatasetSource
from gcdbench.datasets.sources.walk import FileReader

PLAIN_MODES = ("RGB", "L", "DICOM")
SMALLEST, LARGEST, LONGEST = 16, 10_000, 4.0
"""Sides below and above which an image is odd, and the ratio of its sides."""
FLAT = 2.0
"""Standard deviation (of 255 grey values) below which an image shows nothing."""


def unreadable_images(source: DatasetSource, scan: Scan) -> Iterable[Finding]:
    """Files that no run can use."""
    if scan.unreadable:
        names = [f"{source.keys[index]} ({reason})" for index, reason in sorted(scan.unreadable.items())]
        message = f"{len(names)} images cannot be read"
        yield Finding(level="error", kind="unreadable", message=message, groups=single(names))


def odd_modes(source: DatasetSource, scan: Scan, level: Level) -> Iterable[Finding]:
    """Images that are not plain 8-bit colour or grey, and files with several frames."""
    readable = scan.readable
    for mode in sorted(set(scan.modes[readable].tolist()) - set(PLAIN_MODES)):
        where = np.flatnonzero(readable & (scan.modes == mode))
        message = f"{len(where)} images have the mode {mode}, which is converted to 8-bit RGB"
        yield Finding(level=level, kind="mode", message=message, groups=_named(source, where))
    several = np.flatnonzero(readable & (scan.frames > 1))
    if len(several):
        message = f"{len(several)} files have several frames, of which the first is used"
        yield Finding(level=level, kind="frames", message=message, groups=_named(source, several))


def odd_sizes(source: DatasetSource, scan: Scan) -> Iterable[Finding]:
    """Tiny, huge and very long images."""
    width, height = scan.width, scan.height
    low, high = np.minimum(width, height), np.maximum(width, height)
    odd = scan.readable & ((low < SMALLEST) | (high > LARGEST) | (high > LONGEST * np.maximum(low, 1)))
    where = np.flatnonzero(odd)
    if len(where):
        names = [f"{source.keys[i]} ({width[i]} x {height[i]})" for i in where]
        message = f"{len(where)} images have an extreme size"
        yield Finding(level="warning", kind="size", message=message, groups=single(names))


def blank_images(source: DatasetSource, scan: Scan) -> Iterable[Finding]:
    """Images of one value, and images that are almost that."""
    constant = scan.readable & (scan.spread == 0)
    flat = scan.readable & ~constant & (scan.contrast < FLAT)
    for name, where in (("constant", np.flatnonzero(constant)), ("almost blank", np.flatnonzero(flat))):
        if len(where):
            message = f"{len(where)} images are {name}"
            yield Finding(level="warning", kind="blank", message=message, groups=_named(source, where))


def ignored_files(source: DatasetSource) -> Iterable[Finding]:
    """Hidden files, links in a loop and other things among the images."""
    ignored = source.raw.ignored if isinstance(source.raw, FileReader) else ()
    for reason in sorted({item.reason for item in ignored}):
        names = [item.key for item in ignored if item.reason == reason]
        level: Level = "note" if reason == "not an image by its name" else "warning"
        message = f"{len(names)} left out: {reason}"
        yield Finding(level=level, kind="ignored", message=message, groups=single(names))


def _named(source: DatasetSource, where: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[tuple[str, ...], ...]:
    return single([source.keys[i] for i in where])
