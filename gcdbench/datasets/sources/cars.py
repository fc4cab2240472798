"""Stanford Cars: photographs of cars, with annotations in MATLAB files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gcdbench.core.errors import DataError
from gcdbench.datasets.card import load_card
from gcdbench.datasets.roots import find_place
from gcdbench.datasets.source import DatasetRequest, DatasetSource, Remark
from gcdbench.datasets.sources.folder import missing
from gcdbench.datasets.sources.matlab import read_variable
from gcdbench.datasets.sources.official import Listed, from_lists, require_classes
from gcdbench.datasets.sources.options import refuse_unknown_options

META, TRAIN, TEST = "cars_meta.mat", "cars_train_annos.mat", "cars_test_annos_withlabels.mat"


def make_cars(request: DatasetRequest) -> DatasetSource:
    """``devkit/``, ``cars_train/`` and ``cars_test/`` side by side; a test part without labels is left out."""
    refuse_unknown_options(request)
    card = load_card(request.name)
    found = find_place(request.roots, [f"{place}/devkit/{META}" for place in card.places])
    if found is None:
        raise missing(card, request)
    devkit, root = found.parent, found.parent.parent
    names = [str(name) for name in np.atleast_1d(read_variable(found, "class_names"))]
    # A copy on a file system where names hold no slash writes "C-V" for "C/V".
    require_classes(found, names, card, alike=lambda name: name.replace("/", "-"))
    count = len(card.classes)
    listed = _listed(devkit / TRAIN, "cars_train", "train", count)
    lists = [found, devkit / TRAIN]
    remarks: tuple[Remark, ...] = ()
    test = next((folder / TEST for folder in (root, devkit) if (folder / TEST).is_file()), None)
    if test is None:
        message = f"there is no {TEST}, which holds the labels of the test part; it is left out"
        remarks = (Remark(kind="parts", level="warning", message=message),)
    else:
        listed += _listed(test, "cars_test", "test", count)
        lists.append(test)
    return from_lists(root, card, listed, lists, remarks=remarks)


def _listed(file: Path, folder: str, part: str, count: int) -> list[Listed]:
    table = np.atleast_1d(read_variable(file, "annotations"))
    if table.dtype.names is None or not {"fname", "class"} <= set(table.dtype.names):
        raise DataError(
            f"{file} has no classes of its images.",
            hint=f"The labels of the test part are in {TEST} of the publishers.",
        )
    return [
        Listed(
            file=f"{folder}/{_name(file, row['fname'])}",
            label=_index(file, row["class"], count),
            part=part,
            place=f"{file}, entry {number}",
        )
        for number, row in enumerate(table, start=1)
    ]


def _name(file: Path, value: Any) -> str:
    name = str(value)
    if not name or "/" in name or "\\" in name or name.startswith("."):
        raise DataError(f"{file} names the image '{name}', which is not the name of a file.")
    return name


def _index(file: Path, value: Any, count: int) -> int:
    number = np.asarray(value)
    if number.size != 1 or not np.issubdtype(number.dtype, np.number) or not 1 <= float(number.item()) <= count:
        raise DataError(f"{file} has the class '{value}', expected 1 to {count}.")
    return int(number.item()) - 1
