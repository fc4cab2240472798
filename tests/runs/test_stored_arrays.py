"""Arrays are stored in pieces; the bytes, and so every recorded hash, are those of a file written at once."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from gcdbench.runs.predictions import load_arrays, save_arrays

rng = np.random.default_rng(0)
SETS = {
    "predictions": {"ids": np.arange(10), "anchored": np.asarray(True), "confidence": rng.random(10, dtype=np.float32)},
    "embeddings": {"ids": np.arange(3000), "embedding": rng.normal(size=(3000, 200)).astype(np.float16)},
    "nothing": {"ids": np.zeros((0, 3))},
    "columns": {"x": np.asfortranarray(rng.normal(size=(300, 200)))},
}


@pytest.mark.parametrize("name", SETS)
def test_the_bytes_are_those_of_members_written_whole(tmp_path: Path, name: str) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for key in sorted(SETS[name]):
            member = io.BytesIO()
            np.lib.format.write_array(member, SETS[name][key], allow_pickle=False)
            info = zipfile.ZipInfo(f"{key}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            archive.writestr(info, member.getvalue(), compress_type=zipfile.ZIP_DEFLATED)
    sha = save_arrays(tmp_path / "a.npz", SETS[name])
    assert (tmp_path / "a.npz").read_bytes() == buffer.getvalue()
    assert sha == hashlib.sha256(buffer.getvalue()).hexdigest()
    for key, array in load_arrays(tmp_path / "a.npz", sha).items():
        assert np.array_equal(array, SETS[name][key])
