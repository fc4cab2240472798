"""Small image folders made by the tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gcdbench.core.arrays import Pixels
from tests.data.small_bank import COUNT, SIDE

MakeFolder = Callable[..., Path]


def noise_image(seed: int, width: int = 40, height: int = 32) -> Image.Image:
    """A smooth random picture: different for each seed, and far from every other in any perceptual sense."""
    coarse = np.random.default_rng(seed).integers(0, 256, (6, 6, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    folder = tmp_path / "own-cache"
    monkeypatch.setenv("GCDBENCH_CACHE", str(folder))
    return folder


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any data: empty home, no GCDBENCH_DATA."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.delenv("GCDBENCH_DATA", raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "share"))
    return home


@pytest.fixture
def make_folder(tmp_path: Path) -> MakeFolder:
    """``make_folder({"a": 5, "b": 3})`` writes class folders and returns their root."""

    def make(counts: Mapping[str, int], name: str = "set", suffix: str = ".png", seed: int = 0) -> Path:
        root = tmp_path / name
        for number, (label, count) in enumerate(counts.items()):
            (root / label).mkdir(parents=True)
            for index in range(count):
                image = noise_image(seed + 10_000 * number + index)
                image.save(root / label / f"{index:04d}{suffix}")
        return root

    return make


@pytest.fixture(scope="session")
def store() -> Pixels:
    """Images for a bank: more of them than one chunk."""
    return np.random.default_rng(0).integers(0, 256, (COUNT, SIDE, SIDE, 3), dtype=np.uint8)
