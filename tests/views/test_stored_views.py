"""Stored training views: the same values as ever for ``bank:V``, in whatever files; 8 bits; views that roll on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.splits.data import training_rows
from gcdbench.views import bank, eight_bit
from gcdbench.views.augmentation import AUGMENTATIONS, augment, centre_view
from gcdbench.views.sources import StoredViews, choose_views
from tests.data.small_bank import COUNT, SIDE, SIZE, SmallBackbone, banks, context, opened, view_files

ROWS = np.setdiff1d(np.arange(COUNT), np.arange(0, COUNT, 5))


@pytest.fixture(scope="module")
def store() -> Pixels:
    return np.random.default_rng(1).integers(0, 256, (COUNT, SIDE, SIDE, 3), dtype=np.uint8)


def views_of(store: Pixels, draw: int | None) -> Tensor:
    """(N, h, w, c) float32: one view of all images, 64 at a time, as banks were made when they were one array."""
    network, parts = SmallBackbone(), []
    for first in range(0, len(store), 64):
        pixels, ids = store[first : first + 64], np.arange(first, min(first + 64, len(store)))
        if draw is None:
            images = centre_view(pixels, size=SIZE, mean=network.mean, std=network.std)
        else:
            images = augment(
                pixels,
                augmentation=AUGMENTATIONS["paper"],
                ids=ids,
                draw=draw,
                seed=20_240_607,
                size=SIZE,
                mean=network.mean,
                std=network.std,
            )
        with torch.no_grad():
            parts.append(network.prefix(images).permute(0, 2, 3, 1))
    return torch.cat(parts)


def drawn(store: Pixels, ids: IntArray, chosen: IntArray) -> NDArray[np.float32]:
    return np.stack([views_of(store, int(draw))[int(i)].numpy() for i, draw in zip(ids, chosen, strict=True)])


@pytest.mark.parametrize("rows", [None, ROWS], ids=["all images", "training images"])
@pytest.mark.parametrize(("step", "seed"), [(0, 0), (7, 3)])
def test_a_bank_gives_the_values_that_one_array_of_all_views_gave(
    tmp_path: Path, store: Pixels, rows: IntArray | None, step: int, seed: int
) -> None:
    """Bit by bit: stored runs stay reproducible whatever the files look like."""
    whole = torch.stack([*(views_of(store, draw) for draw in range(4)), views_of(store, None)], dim=1)
    old_bank = whole.to(torch.float16).numpy()  # (N, V + 1, h, w, c), the test view last
    source = opened(tmp_path, store, views="bank:4", training_rows=rows)
    ids = np.array([3, 66, 1, 64, 69]) if rows is None else ROWS[[5, 50, 0, 13, -1]]
    chosen = np.concatenate(choose_views(ids, step=step, seed=seed, views=4))
    expected = torch.from_numpy(old_bank[np.tile(ids, 2), chosen]).to(torch.float32).permute(0, 3, 1, 2)
    assert torch.equal(source.pair(ids, step, seed), expected)
    every = np.arange(COUNT)
    assert torch.equal(source.test(every), torch.from_numpy(old_bank[:, 4]).to(torch.float32).permute(0, 3, 1, 2))


def test_images_of_the_test_part_have_a_test_view_and_no_other(tmp_path: Path, store: Pixels) -> None:
    source = opened(tmp_path, store, training_rows=ROWS)
    assert [len(array) for array in source.window] == [len(ROWS)] * 3
    assert len(source.test(np.arange(COUNT))) == COUNT
    with pytest.raises(ValueError, match="not for training"):
        source.pair(np.array([1, 5]), 0, 0)
    with pytest.raises(ValueError, match="not for training"):
        source.pair(np.array([COUNT + 3]), 0, 0)


def test_which_rows_may_be_trained_on_is_a_matter_of_the_dataset_and_not_of_the_split() -> None:
    parts = np.array(["train", "test", "train", "test"])
    for tested in ([0, 1, 0, 1], [1, 1, 0, 1]):
        rows = training_rows(parts, np.array(tested, dtype=bool))
        assert rows is not None
        assert rows.tolist() == [0, 2]
    foreign = training_rows(parts, np.array([0, 1, 0, 0], dtype=bool))
    assert foreign is not None
    assert foreign.tolist() == [0, 2, 3]  # somebody else's split trains on what the dataset calls its test part
    assert training_rows(None, np.array([0, 1], dtype=bool)) is None
    assert training_rows(np.array(["train", "train"]), np.array([0, 0], dtype=bool)) is None


def test_banks_of_different_sizes_share_their_views(
    tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(tmp_path, store, views="bank:2")
    made: list[int] = []

    def count(*arguments: Any, **settings: Any) -> Tensor:
        made.append(settings["draw"])
        return augment(*arguments, **settings)

    monkeypatch.setattr(bank, "augment", count)
    opened(tmp_path, store, views="bank:4")
    assert sorted(set(made)) == [2, 3]
    assert len(banks(tmp_path)) == 1
    opened(tmp_path, store, views="bank:3")
    assert sorted(set(made)) == [2, 3]


@pytest.mark.parametrize("views", ["bank:3", "bank8:3", "rolling:3"])
def test_nothing_but_test_views_is_made_to_predict(tmp_path: Path, store: Pixels, views: str) -> None:
    source = bank.open_views(context(tmp_path, views=views), store)
    assert source.test(np.arange(4)).shape == (4, 5, 8, 8)
    assert view_files(tmp_path) == []


def test_a_bank_in_8_bits_is_a_bank_up_to_half_a_step(tmp_path: Path, store: Pixels) -> None:
    ids = ROWS[[4, 9, 30]]
    source = opened(tmp_path, store, views="bank8:3", training_rows=ROWS)
    pair = source.pair(ids, 2, 5).permute(0, 2, 3, 1).numpy()
    exact = drawn(store, np.tile(ids, 2), np.concatenate(choose_views(ids, step=2, seed=5, views=3)))
    span = exact.max(axis=(1, 2), keepdims=True) - exact.min(axis=(1, 2), keepdims=True)
    assert pair.dtype == np.float32
    assert (np.abs(pair - exact) <= 0.51 * span / eight_bit.LEVELS + 1e-3 * np.abs(exact)).all()
    size = sum(path.stat().st_size for path in banks(tmp_path)[0].glob("view-*.npy"))
    assert size < 3 * len(ROWS) * (8 * 8 * 5 + 4 * 5) + 3 * 500


def test_views_roll_on_with_the_epochs(tmp_path: Path, store: Pixels) -> None:
    """In epoch e the views e·K .. e·K + V − 1 are drawn from; older ones are gone from the disk."""
    source = opened(tmp_path, store, views="rolling:4/2")
    ids = np.array([2, 65, 11])
    for epoch in range(4):
        source.start_epoch(epoch)
        first, second = choose_views(ids, step=9, seed=1, views=4)
        exact = drawn(store, np.tile(ids, 2), np.concatenate([first, second]) + 2 * epoch)
        error = np.abs(source.pair(ids, 9, 1).permute(0, 2, 3, 1).numpy() - exact)
        assert error.max() < 0.02 * np.abs(exact).max()
        assert view_files(tmp_path) == [f"view-{draw:05d}" for draw in range(2 * epoch, 2 * epoch + 4)]


def test_a_run_that_is_resumed_in_a_later_epoch_finds_the_same_views(tmp_path: Path, store: Pixels) -> None:
    ids = np.array([2, 65, 11])
    whole = opened(tmp_path / "whole", store, views="rolling:3")
    for epoch in range(6):
        whole.start_epoch(epoch)
    resumed = bank.open_views(context(tmp_path / "resumed", views="rolling:3"), store)
    resumed.start_epoch(5)
    assert view_files(tmp_path / "resumed") == ["view-00005", "view-00006", "view-00007"]
    assert torch.equal(resumed.pair(ids, 40, 0), whole.pair(ids, 40, 0))


def test_two_runs_that_roll_at_their_own_pace_do_not_disturb_each_other(tmp_path: Path, store: Pixels) -> None:
    """One is ahead and throws away what the other one still draws from."""
    ids = np.arange(20)
    alone = opened(tmp_path / "alone", store, views="rolling:2")
    slow = opened(tmp_path / "shared", store, views="rolling:2")
    fast = opened(tmp_path / "shared", store, views="rolling:2")
    for epoch in range(7):
        fast.start_epoch(epoch)
    assert torch.equal(slow.pair(ids, 1, 0), alone.pair(ids, 1, 0))
    slow.start_epoch(1)
    alone.start_epoch(1)
    assert torch.equal(slow.pair(ids, 1, 0), alone.pair(ids, 1, 0))
    third = opened(tmp_path / "shared", store, views="rolling:2")
    assert isinstance(third, StoredViews)
    assert len(view_files(tmp_path / "shared")) <= 4


def test_a_plain_bank_in_8_bits_loses_nothing_to_a_rolling_one(tmp_path: Path, store: Pixels) -> None:
    opened(tmp_path, store, views="bank8:2")
    rolling = opened(tmp_path, store, views="rolling:2")
    for epoch in range(5):
        rolling.start_epoch(epoch)
    assert "view-00000" in view_files(tmp_path)
    assert "view-00001" in view_files(tmp_path)


def test_many_views_are_more_files_than_usual(tmp_path: Path, store: Pixels) -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
    try:
        source = opened(tmp_path, store[:3], views="bank:300")
        assert source.pair(np.arange(3), 0, 0).shape == (6, 5, 8, 8)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
