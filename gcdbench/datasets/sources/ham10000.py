"""HAM10000: images and a table that names class and lesion of each; splits must keep a lesion together."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from gcdbench.core.errors import DataError
from gcdbench.datasets.card import load_card
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.datasets.sources.folder import missing
from gcdbench.datasets.sources.options import refuse_unknown_options
from gcdbench.datasets.sources.table import Column, read_table
from gcdbench.datasets.sources.walk import FileReader, IgnoredFile, file_stamp, fingerprint, list_images

TABLES = ("HAM10000_metadata.csv", "HAM10000_metadata")


def make_ham10000(request: DatasetRequest) -> DatasetSource:
    """HAM10000 in its published layout: the metadata table, and ``<image_id>.jpg`` anywhere below the same folder."""
    refuse_unknown_options(request)
    card = load_card("ham10000")
    table = _find_table(request.roots, card.places)
    if table is None:
        raise missing(card, request)
    root = table.parent
    listing = list_images(root)
    by_name = {os.path.splitext(os.path.basename(file.key))[0]: file for file in listing.files}
    index = {name: position for position, name in enumerate(card.classes)}
    rows = read_table(table, [Column(name=name) for name in ("lesion_id", "image_id", "dx")]).rows
    unknown = sorted({row["dx"] for _, row in rows} - set(index))
    if unknown:
        raise DataError(f"{table} has the diagnosis '{unknown[0]}', which HAM10000 does not have.")
    here = [row for _, row in rows if row["image_id"] in by_name]
    if not here:
        raise DataError(f"{root} has the table {table.name} but none of its images.", hint=f"Layout: {card.layout}")
    files = [by_name[row["image_id"]] for row in here]
    listed = {file.key for file in files}
    strays = [
        IgnoredFile(key=file.key, reason=f"not in {table.name}") for file in listing.files if file.key not in listed
    ]
    absent = [
        IgnoredFile(key=row["image_id"], reason=f"listed in {table.name}, but there is no such image")
        for _, row in rows
        if row["image_id"] not in by_name
    ]
    return DatasetSource(
        card=card,
        keys=tuple(file.key for file in files),
        labels=np.array([index[row["dx"]] for row in here], dtype=np.int64),
        raw=FileReader(
            root=str(root),
            names=tuple(file.key for file in files),
            ignored=(*listing.ignored, *strays, *absent),
            size=sum(file.size for file in files),
        ),
        groups=np.array([row["lesion_id"] for row in here]),
        location=str(root),
        fingerprint=fingerprint(root, files, file_stamp(table)),
    )


def _find_table(roots: tuple[Path, ...], places: tuple[str, ...]) -> Path | None:
    candidates = (root / place / name for root in roots for place in places for name in TABLES)
    return next((path for path in candidates if path.is_file()), None)
