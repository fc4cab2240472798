"""Images that cannot be read, left out on request instead of stopping everything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gcdbench.core.arrays import Pixels
from gcdbench.core.errors import DataError
from gcdbench.core.work import available_cores
from gcdbench.datasets.source import DatasetSource, Remark
from gcdbench.datasets.sources.memory import remembered
from gcdbench.datasets.sources.walk import FileReader, IgnoredFile
from gcdbench.images.decoding import UnreadableImageError, decode_pixels
from gcdbench.images.workers import map_chunks

_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class _Trial:
    raw: Callable[[int], bytes]
    decode: Callable[[bytes], Pixels]


def leave_out_unreadable(source: DatasetSource) -> DatasetSource:
    """The dataset without the images that cannot be decoded; how many is an accepted issue of every run on it.

    Every image is decoded once for this; what was found is remembered as long as no file changes.
    """
    assert isinstance(source.raw, FileReader)
    reasons = _find_unreadable(source)
    if not reasons:
        return source
    kept = np.setdiff1d(np.arange(len(source)), list(reasons))
    if len(kept) == 0:
        index, reason = next(iter(reasons.items()))
        raise DataError(
            f"None of the {len(source):,} images in {source.location} can be read: {source.keys[index]} ({reason})."
        )
    gone = [IgnoredFile(key=source.keys[index], reason=f"cannot be read: {why}") for index, why in reasons.items()]
    return left_out(
        replace(
            source,
            keys=tuple(source.keys[index] for index in kept),
            labels=source.labels[kept],
            raw=replace(
                source.raw,
                names=tuple(source.raw.names[index] for index in kept),
                ignored=(*source.raw.ignored, *gone),
            ),
            partition=None if source.partition is None else source.partition[kept],
            groups=None if source.groups is None else source.groups[kept],
        ),
        gone,
    )


def left_out(source: DatasetSource, gone: list[IgnoredFile]) -> DatasetSource:
    """``source`` with a remark that names what is left out of it, and the issue that runs record.

    The issue holds no names: it travels with a run to other people.
    """
    names = "; ".join(f"{item.key} ({item.reason})" for item in gone[:_SHOWN])
    more = f" and {len(gone) - _SHOWN} more" if len(gone) > _SHOWN else ""
    remark = Remark(kind="left-out", level="warning", message=f"{len(gone)} images are left out: {names}{more}")
    issue = f"{len(gone)} images that cannot be read were left out"
    return replace(source, remarks=(*source.remarks, remark), accepted_issues=(*source.accepted_issues, issue))


def _find_unreadable(source: DatasetSource) -> dict[int, str]:
    """Position -> reason of each image that cannot be decoded."""

    def look() -> list[tuple[int, str]]:
        trial = _Trial(raw=source.raw, decode=source.decode or decode_pixels)
        stage = "looking for damaged images"
        parts = map_chunks(_try_chunk, trial, len(source), workers=available_cores(), stage=stage)
        return [found for part in parts for found in part.items()]

    return {int(index): str(reason) for index, reason in remembered("unreadable", source, look)}


def _try_chunk(trial: _Trial, chunk: range) -> dict[int, str]:
    reasons = {}
    for index in chunk:
        try:
            trial.decode(trial.raw(index))
        except UnreadableImageError as error:
            reasons[index] = str(error)
        except OSError as error:
            reasons[index] = error.strerror or str(error)
    return reasons
