"""Stored predictions: arrays in an ``.npz``, its sha256 in run.json, and nothing that could execute."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.arrays import IntArray
from gcdbench.core.errors import StoreError
from gcdbench.core.files import write_bytes
from gcdbench.runs.record import Record
from gcdbench.runs.strict_json import open_regular


@dataclass(frozen=True, kw_only=True)
class ScoredSet:
    """Predictions for one evaluation set, with the truth they are scored against.

    ids, cluster, y_true, group: (N,); is_old: (C,) one flag per class. y_true is −1 where nobody knows the class.
    """

    ids: IntArray
    cluster: IntArray
    y_true: IntArray
    group: IntArray
    is_old: NDArray[np.bool_]
    anchored: bool
    k_hat: int
    confidence: NDArray[np.float32] | None = None

    @property
    def has_truth(self) -> bool:
        """Whether there is something to score against."""
        return bool((self.y_true >= 0).all())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is stored."""
        arrays: dict[str, NDArray[Any]] = {
            "ids": self.ids,
            "cluster": self.cluster,
            "y_true": self.y_true,
            "group": self.group,
            "is_old": self.is_old,
            "anchored": np.asarray(self.anchored),
            "k_hat": np.asarray(self.k_hat),
        }
        if self.confidence is not None:
            arrays["confidence"] = self.confidence
        return arrays


def save_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> str:
    """Write an ``.npz`` atomically, the same bytes for the same arrays, and return its sha256."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(arrays):
            # A fixed date: the file's hash must depend on its arrays only.
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o600 << 16  # as writestr sets it
            # Piece by piece: embeddings of a hundred thousand images are not copied as a whole.
            with archive.open(info, "w") as member:
                np.lib.format.write_array(member, np.asarray(arrays[name]), allow_pickle=False)
    content = buffer.getbuffer()
    write_bytes(path, content)
    return hashlib.sha256(content).hexdigest()


def load_arrays(path: Path, expected_sha256: str | None) -> dict[str, NDArray[Any]]:
    """Read an ``.npz`` after checking its hash; never unpickles."""
    with open_regular(path) as file:
        content = file.read()
    found = hashlib.sha256(content).hexdigest()
    if expected_sha256 is not None and found != expected_sha256:
        raise StoreError(
            f"The stored file '{path}' is truncated or was changed: its sha256 is {found[:12]}…, "
            f"the run recorded {expected_sha256[:12]}….",
            hint="Run it again with 'gcdbench run --force', or restore the file.",
        )
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise StoreError(f"The stored file '{path}' is not a valid array file: {error}.") from error
    for array in arrays.values():
        array.flags.writeable = False  # one metric that sorts in place would spoil the next one's numbers
    return arrays


def load_predictions(record: Record, evaluation: str) -> ScoredSet:
    """What a run predicted for one evaluation set, after checking its hash."""
    entry = record.predictions.get(evaluation)
    if entry is None:
        raise StoreError(
            f"The run '{record.run_id}' has no predictions '{evaluation}'.",
            hint=f"It has: {', '.join(record.predictions) or 'none'}.",
        )
    return load_scored_set(record.home / entry.file, entry.sha256)


def load_scored_set(path: Path, expected_sha256: str | None) -> ScoredSet:
    """The inverse of :func:`save_arrays` for predictions."""
    arrays = load_arrays(path, expected_sha256)
    try:
        return ScoredSet(
            ids=arrays["ids"],
            cluster=arrays["cluster"],
            y_true=arrays["y_true"],
            group=arrays["group"],
            is_old=arrays["is_old"],
            anchored=bool(arrays["anchored"]),
            k_hat=int(arrays["k_hat"]),
            confidence=arrays.get("confidence"),
        )
    except KeyError as error:
        raise StoreError(f"The stored file '{path}' lacks the array {error}.") from error
