"""Views for training: stored and fresh, shared and exact."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gcdbench.core.arrays import Pixels
from gcdbench.core.disk_space import format_bytes
from gcdbench.core.errors import ConfigError
from gcdbench.images.image_set import ImageSet
from gcdbench.models.backbone import Backbone
from gcdbench.views import bank, building, chunks
from gcdbench.views.augmentation import AUGMENTATIONS, augment, centre_view
from gcdbench.views.building import run_prefix
from gcdbench.views.setting import parse_views
from gcdbench.views.sources import choose_views
from gcdbench.views.threads import run_chunks
from tests.data.small_bank import COUNT, SIZE, SmallBackbone, banks, context, opened


def expected_view(store: Pixels, ids: list[int], view: int | None) -> Tensor:
    """Straight from the definition: one image at a time, no bank."""
    network = SmallBackbone()
    rows = []
    for i in ids:
        if view is None:
            image = centre_view(store[i : i + 1], size=SIZE, mean=network.mean, std=network.std)
        else:
            image = augment(
                store[i : i + 1],
                augmentation=AUGMENTATIONS["paper"],
                ids=np.array([i]),
                draw=view,
                seed=bank.BANK_SEED,
                size=SIZE,
                mean=network.mean,
                std=network.std,
            )
        with torch.no_grad():
            rows.append(network.prefix(image))
    return torch.cat(rows)


def test_bank_holds_every_view_and_the_test_view(tmp_path: Path, store: Pixels) -> None:
    """Each stored row is the prefix's output for that id and view, up to float16."""
    source = opened(tmp_path, store)
    ids = np.array([69, 0, 64, 63])
    torch.testing.assert_close(source.test(ids), expected_view(store, ids.tolist(), None), rtol=2e-3, atol=2e-3)
    pair = source.pair(ids, 5, 7)
    assert pair.shape == (8, 5, 8, 8)
    assert pair.dtype == torch.float32
    assert pair.is_contiguous(memory_format=torch.channels_last)
    chosen = np.concatenate(choose_views(ids, step=5, seed=7, views=3))
    for row, i, view in zip(pair, [*ids, *ids], chosen, strict=True):
        torch.testing.assert_close(row, expected_view(store, [int(i)], int(view))[0], rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("mode", ["bank:3", "bank8:3", "rolling:3", "online"])
def test_pair_is_a_function_of_seed_step_and_id(tmp_path: Path, store: Pixels, mode: str) -> None:
    """Batches, their order and their size do not matter; steps and seeds do; the two views differ."""
    source = bank.open_views(context(tmp_path, views=mode), store)
    ids = np.arange(40)
    whole = source.pair(ids, 3, 11)
    some = np.array([17, 4])
    part = source.pair(some, 3, 11)
    torch.testing.assert_close(part, whole[[17, 4, 57, 44]], rtol=1e-5, atol=1e-5)
    assert torch.equal(source.pair(ids, 3, 11), whole)
    assert not torch.equal(source.pair(ids, 4, 11), whole)
    assert not torch.equal(source.pair(ids, 3, 12), whole)
    assert all(not torch.equal(a, b) for a, b in zip(whole[:40], whole[40:], strict=True))
    assert not whole.requires_grad


def test_choice_of_views_is_uniform_over_ordered_pairs() -> None:
    """Never the same view twice, and every ordered pair equally often, over ids and over steps."""
    by_id = Counter(zip(*(c.tolist() for c in choose_views(np.arange(24_000), step=0, seed=1, views=4)), strict=True))
    ids = np.zeros(1, dtype=np.int64)
    by_step = Counter(tuple(int(c[0]) for c in choose_views(ids, step=step, seed=1, views=4)) for step in range(6_000))
    for counts, expected in ((by_id, 2000), (by_step, 500)):
        assert set(counts) == {(a, b) for a in range(4) for b in range(4) if a != b}
        assert max(abs(count - expected) for count in counts.values()) < 5 * expected**0.5


def only_probes(backbone: Backbone, images: Tensor) -> Tensor:
    """The shape of an output may be asked for; images may not be computed."""
    assert len(images) == 1
    return run_prefix(backbone, images)


def test_second_opening_computes_nothing(tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another method or seed finds the bank."""
    first = opened(tmp_path, store).test(np.arange(5))
    monkeypatch.setattr(bank, "run_prefix", only_probes)
    events: list[Any] = []
    again = opened(tmp_path, store, seed=99, log=events.append).test(np.arange(5))
    assert torch.equal(first, again)
    assert not events


def test_bytes_do_not_depend_on_the_number_of_threads(
    tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One, two or three threads, whatever torch's own setting: the same file."""
    contents = set()
    for threads in (1, 2, 3):
        monkeypatch.setattr(building, "available_cores", lambda n=threads: n)
        cache = tmp_path / str(threads)
        opened(cache, store)
        contents.add(b"".join(path.read_bytes() for path in sorted(banks(cache)[0].glob("*.npy"))))
    assert len(contents) == 1


@pytest.mark.parametrize(
    ("cores", "image_size", "threads"),
    [(1, 128, 1), (2, 128, 2), (64, 128, 6), (64, 224, 6), (64, 96, 10), (64, 28, 64), (64, 512, 3), (64, 2048, 1)],
)
def test_building_threads_share_a_budget_of_memory(cores: int, image_size: int, threads: int) -> None:
    """As many as there are cores while images are small; large ones leave room for a few threads, or for one."""
    assert chunks.building_threads(cores, image_size) == threads


def test_a_machine_with_many_cores_builds_within_the_budget(
    tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def remember(*arguments: Any, threads: int) -> Any:
        asked.append(threads)
        return run_chunks(*arguments, threads=threads)

    monkeypatch.setattr(building, "available_cores", lambda: 64)
    monkeypatch.setattr(chunks, "BUILDING_MEMORY", 3 * chunks.CHUNK_MEMORY * SIZE**2 // 128**2)
    monkeypatch.setattr(building, "run_chunks", remember)
    opened(tmp_path, store)
    assert asked == [3, 3, 3, 3]


def test_size_is_said_before_and_progress_during_the_work(tmp_path: Path, store: Pixels) -> None:
    events: list[Any] = []
    opened(tmp_path, store, log=events.append)
    [note] = [event["message"] for event in events if event["type"] == "note"]
    size = sum(path.stat().st_size for path in banks(tmp_path)[0].glob("*.npy"))
    assert format_bytes(size) in note
    for task, total in (("test views", COUNT), ("view bank", COUNT * 3)):
        progress = [event for event in events if event["type"] == "progress" and event["task"] == task]
        assert progress[0]["done"] == 0
        assert progress[-1]["done"] == progress[-1]["total"] == total
        assert [event["done"] for event in progress] == sorted(event["done"] for event in progress)


def test_bank_is_mapped_and_not_loaded(tmp_path: Path, store: Pixels) -> None:
    source = opened(tmp_path, store)
    assert len(source.window) == 3
    for array in (source.outputs, *source.window):
        assert isinstance(array, np.memmap)
        assert not array.flags.writeable


def test_frozen_features_are_the_pretrained_networks(tmp_path: Path, store: Pixels) -> None:
    """Pooled output in evaluation mode, for the ids asked for, stored, whatever was trained since."""
    ctx = context(tmp_path)
    ids = np.array([3, 69, 1])
    images = ImageSet(ids=ids, store=store)
    features = bank.frozen_features(ctx, images)
    network = SmallBackbone().eval()
    with torch.no_grad():
        expected = network.run_tail(expected_view(store, ids.tolist(), None)).pooled
    np.testing.assert_allclose(features, expected.numpy(), rtol=1e-4, atol=1e-5)
    assert features.dtype == np.float32
    with torch.no_grad():
        ctx.backbone.tail[0].weight.zero_()
    assert np.array_equal(bank.frozen_features(context(tmp_path), images), features)
    assert np.array_equal(bank.frozen_features(dataclasses.replace(ctx, store_key="other"), images), features)


def test_without_an_identity_nothing_is_kept(tmp_path: Path, store: Pixels) -> None:
    """A store without a key cannot be filed, so its bank lives in memory."""
    source = opened(tmp_path, store, store_key="")
    assert source.pair(np.arange(2), 0, 0).shape == (4, 5, 8, 8)
    assert source.test(np.arange(2)).shape == (2, 5, 8, 8)
    assert not (tmp_path / "banks").exists()
    assert bank.open_views(context(None), store).test(np.arange(1)).shape == (1, 5, 8, 8)


@pytest.mark.parametrize(
    "views",
    [
        "bank",
        "bank:1",
        "bank:x",
        "offline",
        "bank:-3",
        "",
        "bank:²",
        "bank:1025",
        "bank:" + 5000 * "9",
        "bank8:1",
        "bank8",
        "bank8:4/1",
        "bank4:4",
        "rolling:1",
        "rolling:4/5",
        "rolling:4/0",
        "rolling:4/",
        "auto:3",
    ],
)
def test_views_that_do_not_exist_are_refused(views: str) -> None:
    with pytest.raises(ConfigError, match=r"views must be 'online'.*V from 2 to 1024"):
        parse_views(views)


@pytest.mark.parametrize(
    ("text", "kind", "count", "fresh"),
    [
        ("online", "online", 0, 0),
        ("auto", "auto", 0, 0),
        ("bank:2", "bank", 2, 0),
        ("bank:1024", "bank", 1024, 0),
        ("bank8:16", "bank8", 16, 0),
        ("rolling:6", "rolling", 6, 1),
        ("rolling:6/3", "rolling", 6, 3),
    ],
)
def test_views_that_exist(text: str, kind: str, count: int, fresh: int) -> None:
    setting = parse_views(text)
    assert (setting.kind, setting.count, setting.fresh) == (kind, count, fresh)
    assert str(setting) == text
