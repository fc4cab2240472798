"""Truth that comes later: a discovery becomes a run with scores, by its stored predictions."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path, PurePosixPath

from gcdbench.core.errors import DataError
from gcdbench.datasets.sources.table import Column, read_table
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.attempt import PREDICTIONS, hash_files
from gcdbench.runs.discover import Discovered, with_truth
from gcdbench.runs.evaluate import score_run
from gcdbench.runs.predictions import load_predictions, save_arrays
from gcdbench.runs.reader import RECORD, SCORES, parse_split
from gcdbench.runs.record import TRANSDUCTIVE, Scores, StoredFile
from gcdbench.runs.recovery import recover
from gcdbench.runs.strict_json import Fields, write_sealed
from gcdbench.splits.manifest import UNLABELLED

COLUMNS = (
    Column(name="path", others=("file", "filename", "file_name", "filepath", "image", "image_path")),
    Column(name="label", others=("class", "category", "diagnosis")),
)


def read_truth(file: Path, found: Discovered, unlabelled: Path | None) -> dict[int, str]:
    """The class of every unlabelled image, by id.

    Paths are absolute, relative to the file's folder, or relative to the folder of unlabelled images.
    """
    bases = [file.parent, *([unlabelled] if unlabelled is not None and unlabelled.is_dir() else []), Path()]
    told: dict[str, str] = {}
    for line, row in read_table(file, COLUMNS).rows:
        if not row["label"]:
            continue
        places = [os.path.realpath(base / row["path"]) for base in bases]
        for place in places:
            if told.setdefault(place, row["label"]) != row["label"]:
                raise DataError(f"{file}, line {line}: '{row['path']}' was listed before, as '{told[place]}'.")
    ids = found.prepared.split.ids(UNLABELLED)
    paths = found.paths(ids)
    truth = {
        number: told[real]
        for number, path in zip(ids.tolist(), paths, strict=True)
        if (real := os.path.realpath(path)) in told
    }
    if len(truth) < len(ids):
        first = next(path for path in paths if os.path.realpath(path) not in told)
        raise DataError(
            f"{file} gives the class of {len(truth):,} of the {len(ids):,} unlabelled images; '{first}' is not in it.",
            hint="A score needs the class of every unlabelled image: columns path and label.",
        )
    return truth


def score_with_truth(found: Discovered, truth: dict[int, str], manager: PluginManager) -> Scores:
    """Store the truth with the run's predictions and score them as those of any run.

    The run keeps its id: truth that nobody used for training is not part of what the run is.
    """
    directory = found.result.directory
    split = with_truth(found.prepared.split, truth)
    with directory.writing():
        recover(directory)
        record = directory.record()
        stored = load_predictions(record, TRANSDUCTIVE)
        scored = replace(stored, y_true=split.labels[stored.ids], is_old=split.is_old)
        # A file of its own: run.json names one complete result, whenever this process is killed.
        old = record.predictions[TRANSDUCTIVE].file
        part = TRANSDUCTIVE if old != f"{PREDICTIONS}/{TRANSDUCTIVE}.npz" else f"{TRANSDUCTIVE}-scored"
        file = str(PurePosixPath(PREDICTIONS) / f"{part}.npz")
        sha256 = save_arrays(record.home / file, scored.arrays())
        record = replace(
            record,
            predictions={**record.predictions, TRANSDUCTIVE: StoredFile(file=file, sha256=sha256)},
            split=parse_split(Fields({**split.header(), "dataset": record.dataset}, "split")),
        )
        scores = score_run(record, manager)
        write_sealed(record.home / SCORES, scores.to_table())
        files = {name: entry for name, entry in hash_files(record.home).items() if name != old}
        write_sealed(directory.path / RECORD, replace(record, files=files).to_table())
        (record.home / old).unlink(missing_ok=True)
    return scores
