"""Arrays in the cache: damage of every kind is said and mended, and what is intact is left alone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gcdbench.core.cached_arrays import Form, Recipe, open_cached
from gcdbench.core.errors import StoreError

FORM = Form(shape=(50, 7), dtype=np.dtype(np.int32))
VALUES = {"a": 1, "b": 2}


class Maker:
    """Remembers what was made and what was said."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.notes: list[str] = []

    def fill(self, name: str, array: NDArray[Any]) -> None:
        self.made.append(name)
        array[:] = VALUES[name]

    def open(self, cache: Path | None, names: str = "ab") -> dict[str, NDArray[Any]]:
        recipe = Recipe(
            kind="banks",
            key="k",
            subject="The thing",
            title="a thing",
            forms=dict.fromkeys(names, FORM),
            fill=self.fill,
            note=self.notes.append,
        )
        return open_cached(cache, recipe)


def right(arrays: dict[str, NDArray[Any]]) -> bool:
    return all((array == VALUES[name]).all() and array.shape == FORM.shape for name, array in arrays.items())


def zero_half(file: Path) -> None:
    with file.open("r+b") as handle:
        handle.seek(file.stat().st_size // 2)
        handle.write(bytes(file.stat().st_size // 2))


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[200] ^= 4
    file.write_bytes(content)


def make_directory(file: Path) -> None:
    file.unlink()
    (file / "deep").mkdir(parents=True)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "zeroed half": zero_half,
    "flipped bit": flip,
    "cut": lambda file: file.write_bytes(file.read_bytes()[:-1]) and None,
    "empty": lambda file: file.write_bytes(b"") and None,
    "directory": make_directory,
    "another array": lambda file: np.save(file, np.zeros(3)),
}


def test_arrays_are_made_once_mapped_and_read_only(tmp_path: Path) -> None:
    maker = Maker()
    for _ in range(2):
        arrays = maker.open(tmp_path)
        assert right(arrays)
        assert all(isinstance(array, np.memmap) and not array.flags.writeable for array in arrays.values())
    assert maker.made == ["a", "b"]
    assert not maker.notes


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_said_and_mended_and_the_rest_is_left_alone(tmp_path: Path, kind: str) -> None:
    maker = Maker()
    maker.open(tmp_path)
    home = tmp_path / "banks" / "k"
    before = (home / "a.npy").read_bytes(), (home / "b.npy").stat().st_mtime_ns
    DAMAGE[kind](home / "a.npy")
    assert right(maker.open(tmp_path))
    assert maker.made == ["a", "b", "a"]
    [note] = maker.notes
    assert "The thing" in note
    assert "a.npy" in note
    assert ((home / "a.npy").read_bytes(), (home / "b.npy").stat().st_mtime_ns) == before
    assert right(maker.open(tmp_path))
    assert len(maker.made) == 3
    assert {path.name for path in home.iterdir()} == {"a.npy", "b.npy", "meta.json"}


@pytest.mark.parametrize("what", ["meta.json", "."])
def test_what_is_in_the_way_of_an_entry_is_replaced(tmp_path: Path, what: str) -> None:
    """A directory where its description should be; a file where its folder should be."""
    maker = Maker()
    home = tmp_path / "banks" / "k"
    if what == ".":
        home.parent.mkdir()
        home.write_text("a file")
    else:
        (home / what / "deep").mkdir(parents=True)
    assert right(maker.open(tmp_path))
    assert right(maker.open(tmp_path))
    assert maker.made == ["a", "b"]


@pytest.mark.parametrize("what", ["banks", "locks", "locks/banks-k.lock"])
def test_what_nobody_may_replace_is_one_sentence(tmp_path: Path, what: str) -> None:
    place = tmp_path / what
    if what.endswith(".lock"):
        place.mkdir(parents=True)
    else:
        place.write_text("a file")
    with pytest.raises(StoreError, match="cannot be changed"):
        Maker().open(tmp_path)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may write everywhere")
def test_an_intact_entry_of_a_read_only_cache_is_read(tmp_path: Path) -> None:
    Maker().open(tmp_path)
    for path in (tmp_path, *tmp_path.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert right(Maker().open(tmp_path))
    finally:
        for path in (tmp_path, *tmp_path.rglob("*")):
            path.chmod(0o755)


def test_arrays_are_added_to_an_entry(tmp_path: Path) -> None:
    maker = Maker()
    maker.open(tmp_path, "a")
    assert right(maker.open(tmp_path, "ba"))
    assert list(maker.open(tmp_path, "ba")) == ["b", "a"]
    assert maker.made == ["a", "b"]


def test_what_a_failed_build_had_finished_stays_and_nothing_else(tmp_path: Path) -> None:
    class Failing(Maker):
        def fill(self, name: str, array: NDArray[Any]) -> None:
            super().fill(name, array)
            if name == "b":
                raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        Failing().open(tmp_path)
    assert {path.name for path in (tmp_path / "banks" / "k").iterdir()} == {"a.npy", "meta.json"}
    shutil.rmtree(tmp_path / "banks" / "k")
    with pytest.raises(RuntimeError, match="power cut"):
        Failing().open(tmp_path, "b")
    assert not (tmp_path / "banks" / "k").exists()


def test_without_a_cache_nothing_is_kept() -> None:
    maker = Maker()
    assert right(maker.open(None))
    assert right(maker.open(None))
    assert maker.made == ["a", "b", "a", "b"]
