"""Nesting of pickles: as deep as the value that was pickled, and a refusal where a process would end."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcdbench.core.errors import WeightsError
from gcdbench.models.pickle_nesting import tuple_depth
from gcdbench.models.weights import read_state

VALUES = st.recursive(
    st.integers() | st.text(max_size=3) | st.none(),
    lambda inner: st.tuples(inner) | st.tuples(inner, inner) | st.tuples(*[inner] * 4) | st.frozensets(inner),
    max_leaves=20,
)

DEEP_KEYS = {
    "one by one": b"\x80\x02})" + b"\x85" * 1_000_000 + b"K\x01s.",
    "with a neighbour": b"\x80\x02})" + b"N\x86" * 300_000 + b"K\x01s.",
    "down to a mark": b"\x80\x02}" + b"(" * 300_000 + b"t" * 300_000 + b"K\x01s.",
    "kept and taken": b"\x80\x02})" + b"q\x000h\x00\x85" * 300_000 + b"K\x01s.",
    "two of each": b"\x80\x02})" + b"2\x86" * 300_000 + b"K\x01s.",
}


def depth_of(value: object) -> int:
    """An empty tuple is an instruction of its own, which nests nothing."""
    if not isinstance(value, tuple | frozenset) or value == ():
        return 0
    return 1 + max(map(depth_of, value), default=0)


@given(value=VALUES, protocol=st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_it_is_the_depth_of_the_value(value: Any, protocol: int) -> None:
    found = tuple_depth(io.BytesIO(pickle.dumps(value, protocol=protocol)))
    assert found >= depth_of(value)
    if protocol >= 4:  # older ones make a frozen set with a call, whose arguments are a tuple
        assert found == depth_of(value)


@pytest.mark.parametrize("deep", DEEP_KEYS.values(), ids=DEEP_KEYS.keys())
@pytest.mark.parametrize("form", ["zip", "legacy", "legacy, names of storages"])
def test_a_file_with_deep_keys_is_refused(deep: bytes, form: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.pth"
    if form != "zip":
        torch.save({}, path, _use_new_zipfile_serialization=False)
        content = path.read_bytes()
        state, names = pickle.dumps({}, protocol=2), pickle.dumps([], protocol=2)
        end = content.index(state) + (len(state) if form.endswith("storages") else 0)
        assert content.index(state + names) + len(state + names) == len(content)  # the last two pickles
        path.write_bytes(content[:end] + deep)
    else:
        torch.save({}, tmp_path / "plain.pth")
        with zipfile.ZipFile(tmp_path / "plain.pth") as plain, zipfile.ZipFile(path, "w") as changed:
            for name in plain.namelist():
                changed.writestr(name, deep if name.endswith("data.pkl") else plain.read(name))
    with pytest.raises(WeightsError, match="cannot be read as a weight file"):
        read_state(path)


@pytest.mark.parametrize("new", [True, False])
def test_weights_are_read_in_both_of_torchs_forms(new: bool, tmp_path: Path) -> None:
    state = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).state_dict()
    torch.save(state, tmp_path / "weights.pth", _use_new_zipfile_serialization=new)
    found = read_state(tmp_path / "weights.pth")
    assert found.keys() == state.keys()
    assert all(torch.equal(found[name], value) for name, value in state.items())
