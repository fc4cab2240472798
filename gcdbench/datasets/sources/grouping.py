"""Which images belong to one patient: by their folder, by a pattern in their path, or by a field of DICOM files."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.errors import DataError
from gcdbench.datasets.source import Remark
from gcdbench.datasets.sources.layout import Place
from gcdbench.datasets.sources.walk import FileReader

DICOM_PREFIX = "dicom:"
_HINT = (
    "Use groups=parent (the folder that an image is in), a pattern with a named group such as "
    "groups='(?P<group>P[0-9]+)', or groups=dicom:PatientID."
)


def make_groups(
    how: str, keys: Sequence[str], places: Sequence[Place], reader: FileReader
) -> tuple[NDArray[np.str_], tuple[Remark, ...]]:
    """(N,) group names as the option ``groups`` asks for, and what there is to say about them.

    An image without a group of its own stands alone, under its key.
    """
    if how == "parent":
        # Below the class folder: a patient with images of two classes, or of two parts, is one patient.
        names = ["/".join(place.below) for place in places]
    elif how.startswith(DICOM_PREFIX):
        names = _dicom_names(how.removeprefix(DICOM_PREFIX), len(keys), reader)
    else:
        names = _matched_names(how, keys)
    if not any(names):
        raise DataError(f"'groups={how}' gives none of the {len(keys):,} images a group.", hint=_HINT)
    remarks = []
    if alone := names.count(""):
        message = f"{alone:,} of {len(keys):,} images belong to no group under 'groups={how}' and count alone"
        remarks.append(Remark(kind="groups", level="warning", message=message))
    groups = np.array([name or f"alone: {key}" for name, key in zip(names, keys, strict=True)])
    count = len(np.unique(groups))
    remarks.append(Remark(kind="groups", message=f"{len(keys):,} images in {count:,} groups by 'groups={how}'"))
    return groups, tuple(remarks)


def missing_groups(places: Sequence[Place]) -> tuple[Remark, ...]:
    """A warning where class folders hold sub-folders, which often are patients, and nothing was said about them."""
    below: dict[str, set[tuple[str, ...]]] = {}
    for place in places:
        if place.label and place.below:
            below.setdefault(place.label, set()).add(place.below)
    several = {label: folders for label, folders in below.items() if len(folders) > 1}
    if not several:
        return ()
    folders = sum(map(len, several.values()))
    message = (
        f"{len(several)} class folders hold {folders:,} sub-folders, whose images may be on both sides of the split; "
        "if a sub-folder is a patient, add --dataset-set groups=parent"
    )
    return (Remark(kind="no-groups", level="warning", message=message),)


def _matched_names(pattern: str, keys: Sequence[str]) -> list[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise DataError(f"'groups={pattern}' is not a pattern: {error}.", hint=_HINT) from None
    if "group" not in compiled.groupindex:
        raise DataError(f"'groups={pattern}' has no part named 'group'.", hint=_HINT)
    found = (compiled.search(key) for key in keys)
    return [(match["group"] or "") if match is not None else "" for match in found]


def _dicom_names(keyword: str, count: int, reader: FileReader) -> list[str]:
    from gcdbench.images.dicom import header_tokens

    try:
        return header_tokens(keyword, count, reader.open)
    except OSError as error:
        raise DataError(f"{error.filename or reader.root} cannot be read: {error.strerror or error}.") from None
