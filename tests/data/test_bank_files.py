"""How banks are kept: what is in their key, full and slow disks, damage, and several processes at once."""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gcdbench.core import cached_arrays
from gcdbench.core.arrays import Pixels
from gcdbench.core.errors import DiskSpaceError
from gcdbench.images.image_set import ImageSet
from gcdbench.models import products
from gcdbench.views import bank
from gcdbench.views.augmentation import augment
from tests.data.small_bank import COUNT, SmallBackbone, banks, context, opened, view_files


@pytest.mark.parametrize(
    "change",
    [
        {"store_key": "store-b"},
        {"image_size": 12},
        {"views": "bank8:3"},
        {"views": "rolling:3"},
        {"training_rows": np.arange(3, 60)},
        {"augmentation": "geometric"},
        {"backbone": {"weights_sha256": "x"}},
        {"backbone": {"name": "other"}},
        {"backbone": {"mean": (0.5, 0.5, 0.5)}},
        {"backbone": {"std": (0.5, 0.5, 0.5)}},
    ],
)
def test_everything_that_shapes_a_bank_is_in_its_key(tmp_path: Path, store: Pixels, change: dict[str, Any]) -> None:
    opened(tmp_path, store)
    if "backbone" in change:
        other = SmallBackbone()
        for name, value in change["backbone"].items():
            setattr(other, name, value)
        change = {"load_backbone": lambda: other}
    opened(tmp_path, store, **change)
    assert len(banks(tmp_path)) == 2


@pytest.mark.parametrize("kind", ["parameter", "buffer", "hidden buffer"])
def test_a_prefix_that_changed_under_its_name_gets_a_bank_of_its_own(tmp_path: Path, store: Pixels, kind: str) -> None:
    """A plugin's backbone says its name and its weights' hash itself; neither need change when its values do."""

    def load(value: float) -> SmallBackbone:
        network = SmallBackbone()
        if kind == "parameter":
            with torch.no_grad():
                network.prefix.weight[0, 0, 0, 0] = value
        else:
            network.prefix.register_buffer("scale", torch.tensor(value), persistent=kind == "buffer")
        return network

    opened(tmp_path, store, load_backbone=lambda: load(1.0))
    opened(tmp_path, store, load_backbone=lambda: load(1.0))
    assert len(banks(tmp_path)) == 1
    opened(tmp_path, store, load_backbone=lambda: load(2.0))
    assert len(banks(tmp_path)) == 2


def test_the_trained_tail_shapes_features_and_not_a_bank(tmp_path: Path, store: Pixels) -> None:
    def load() -> SmallBackbone:
        network = SmallBackbone()
        with torch.no_grad():
            network.tail[0].weight.zero_()
        return network

    images = ImageSet(ids=np.arange(3), store=store)
    plain, other = context(tmp_path), context(tmp_path, load_backbone=load)
    assert not np.array_equal(bank.frozen_features(plain, images), bank.frozen_features(other, images))
    for ctx in (plain, other):
        bank.open_views(ctx, store).start_epoch(0)
    assert len(banks(tmp_path)) == 1


def test_the_library_for_products_shapes_features_and_not_a_bank_of_convolutions(
    tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = ImageSet(ids=np.arange(3), store=store)
    for library in ("blas", "onednn"):
        monkeypatch.setattr(products, "product_library", lambda library=library: library)
        bank.frozen_features(context(tmp_path), images)
        bank.open_views(context(tmp_path), store).start_epoch(0)
    assert len(list(tmp_path.glob("features/*/"))) == 2
    assert len(banks(tmp_path)) == 1


def test_the_digest_of_a_state_depends_on_names_types_and_shapes_and_not_on_order_or_layout() -> None:
    def module(**tensors: Tensor) -> nn.Module:
        made = nn.Module()
        for name, tensor in tensors.items():
            made.register_buffer(name, tensor)
        return made

    a, b = torch.arange(24.0).reshape(1, 2, 3, 4), torch.tensor(3)
    digest = bank.state_digest(module(a=a, b=b))
    assert digest == bank.state_digest(module(b=b, a=a.to(memory_format=torch.channels_last)))
    others = [module(a=a, c=b), module(a=a.flatten(), b=b), module(a=a.to(torch.bfloat16), b=b), module(a=a)]
    assert len({digest, *map(bank.state_digest, others)}) == 5


def test_compiled_kernels_of_another_version_get_a_bank_of_their_own(
    tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("native-1", "native-2"):
        monkeypatch.setattr(bank, "kernels_key", lambda version=version: version)
        opened(tmp_path, store)
    assert len(banks(tmp_path)) == 2


def test_a_disk_that_is_too_small_is_one_sentence(
    tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = bank.open_views(context(tmp_path), store)  # the test views are there
    full = type(shutil.disk_usage(tmp_path))(10**9, 10**9 - 1000, 1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
    with pytest.raises(DiskSpaceError, match=r"needs 67.2 MB \(135 kB and 67.1 MB that stay free\) in .*, where 1 kB"):
        source.start_epoch(0)
    assert not banks(tmp_path)


def test_a_failed_build_leaves_whole_views_behind(
    tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in the middle: nothing that could be taken for a view, and the next attempt goes on from there."""

    def fail_late(*arguments: Any, **settings: Any) -> Any:
        calls.append(1)
        if len(calls) > 5:
            raise RuntimeError("power cut")
        return augment(*arguments, **settings)

    calls: list[int] = []
    monkeypatch.setattr(bank, "augment", fail_late)
    with pytest.raises(RuntimeError, match="power cut"):
        opened(tmp_path, store)
    assert view_files(tmp_path) == ["view-00000", "view-00001"]
    calls.clear()
    monkeypatch.setattr(bank, "augment", lambda *a, **k: calls.append(1) or augment(*a, **k))
    opened(tmp_path, store)
    assert len(calls) == 2  # two chunks of the third view
    assert len(banks(tmp_path)) == 1


def test_a_disk_that_fills_up_during_the_work_is_one_sentence(
    tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are claimed before anything is written through the map, where a full disk would end the process."""

    def no_room(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    source = bank.open_views(context(tmp_path), store)
    monkeypatch.setattr(os, "posix_fallocate", no_room)
    monkeypatch.setattr(bank, "augment", lambda *a, **k: pytest.fail("began to write"))
    with pytest.raises(DiskSpaceError, match="The view bank needs"):
        source.start_epoch(0)
    assert not banks(tmp_path)


def test_a_cache_of_somebody_else_can_be_read(tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise PermissionError

    first = opened(tmp_path, store).test(np.arange(3))
    monkeypatch.setattr(os, "utime", refuse)
    assert torch.equal(first, opened(tmp_path, store).test(np.arange(3)))


def test_a_bank_that_is_cleared_while_it_is_opened_is_built_again(
    tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(tmp_path, store)
    home = banks(tmp_path)[0]
    moments: list[str] = []

    def clear(moment: str) -> None:
        if moment not in moments:
            shutil.rmtree(home)
        moments.append(moment)

    def clear_when_written(path: Path) -> None:
        if path == home:
            clear("written")

    source = bank.open_views(context(tmp_path), store)
    monkeypatch.setattr(cached_arrays, "touch", lambda file: clear("touched"))
    monkeypatch.setattr(cached_arrays, "sync", clear_when_written)
    source.start_epoch(0)
    assert source.pair(np.arange(3), 0, 0).shape == (6, 5, 8, 8)
    assert moments[:2] == ["touched", "written"]
    assert view_files(tmp_path) == ["view-00000", "view-00001", "view-00002"]


def zero_half(content: bytes) -> bytes:
    return content[: len(content) // 2] + bytes(len(content) - len(content) // 2)


def flip_one_bit(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 16]) + content[middle + 1 :]


DAMAGE = {
    "empty": lambda content: b"",
    "half a header": lambda content: content[:50],
    "a byte short": lambda content: content[:-1],
    "no array": lambda content: bytes(len(content)),
    "zeroed half": zero_half,
    "flipped bit": flip_one_bit,
}


@pytest.mark.parametrize(
    ("kind", "views"), [*((kind, "bank:3") for kind in DAMAGE), ("flipped bit", "bank8:3"), ("no array", "rolling:3")]
)
def test_a_damaged_bank_is_built_again_and_said(tmp_path: Path, store: Pixels, kind: str, views: str) -> None:
    events: list[Any] = []
    first = opened(tmp_path, store, views=views)
    ids = np.arange(COUNT)
    before = first.pair(ids, 3, 1), first.test(ids)
    for file in [*tmp_path.glob("banks/*/*.npy")]:
        content = file.read_bytes()
        file.unlink()  # the first source keeps its own copy
        file.write_bytes(DAMAGE[kind](content))
    again = opened(tmp_path, store, log=events.append, views=views)
    assert torch.equal(again.pair(ids, 3, 1), before[0])
    assert torch.equal(again.test(ids), before[1])
    assert any("damaged" in event.get("message", "") for event in events)


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_features_are_computed_again_and_said(tmp_path: Path, store: Pixels, kind: str) -> None:
    events: list[Any] = []
    images = ImageSet(ids=np.arange(COUNT), store=store)
    first = bank.frozen_features(context(tmp_path), images)
    [file] = tmp_path.glob("features/*/*.npy")
    file.write_bytes(DAMAGE[kind](file.read_bytes()))
    assert np.array_equal(bank.frozen_features(context(tmp_path, log=events.append), images), first)
    assert any("damaged" in event.get("message", "") for event in events)


def test_leftovers_of_a_killed_build_are_cleared(tmp_path: Path, store: Pixels) -> None:
    opened(tmp_path, store)
    home = banks(tmp_path)[0]
    (home / "view-00001.npy").rename(home / ".tmp-view-00001.npy")
    opened(tmp_path, store)
    assert {path.name for path in home.iterdir()} == {*(f"view-{i:05d}.npy" for i in range(3)), "meta.json"}


def test_leftovers_of_a_killed_build_are_gone_before_the_disk_is_measured(
    tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a large build that was killed would have no room to be repeated."""
    opened(tmp_path, store)
    home = banks(tmp_path)[0]
    killed = home / ".tmp-view-00002.npy"
    (home / "view-00002.npy").rename(killed)
    usage = type(shutil.disk_usage(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 0, 1000 if killed.exists() else 10**9))
    opened(tmp_path, store)
    assert banks(tmp_path) == [home]


def _open_in_child(cache: str, pixels: Pixels, queue: Any) -> None:
    events: list[Any] = []
    source = opened(Path(cache), pixels, log=events.append)
    built = any(event.get("type") == "progress" for event in events)
    queue.put((built, source.pair(np.arange(3), 0, 0).sum().item()))


def test_concurrent_runs_build_once(tmp_path: Path, store: Pixels) -> None:
    """Three processes at once: one builds, the others wait and read the same numbers."""
    spawn = multiprocessing.get_context("spawn")
    queue = spawn.Queue()
    children = [spawn.Process(target=_open_in_child, args=(str(tmp_path), store, queue)) for _ in range(3)]
    for child in children:
        child.start()
    answers = [queue.get(timeout=120) for _ in children]
    for child in children:
        child.join()
    assert any(built for built, _ in answers)
    assert len({total for _, total in answers}) == 1
    assert view_files(tmp_path) == ["view-00000", "view-00001", "view-00002"]
