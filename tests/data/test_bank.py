"""Views for training: stored and fresh, shared and exact."""

from __future__ import annotations

import dataclasses
import errno
import multiprocessing
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gcdbench.backbones.base import Backbone
from gcdbench.context import RunContext
from gcdbench.data import bank, cachefile
from gcdbench.data.files import format_bytes
from gcdbench.data.parallel import run_chunks
from gcdbench.data.types import ImageView, Pixels
from gcdbench.data.view_setting import parse_views
from gcdbench.data.views import AUGMENTATIONS, augment, centre_view
from gcdbench.errors import ConfigError, DiskSpaceError
from gcdbench.native import loader

SIZE, SIDE, COUNT = 16, 18, 70  # more images than one chunk


class SmallBackbone(Backbone):
    """A convolution as prefix, another as tail."""

    name = "small"
    channels = 6
    stride = 4

    def __init__(self) -> None:
        super().__init__()
        self.weights_sha256 = "none"
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.prefix = nn.Conv2d(3, 5, 3, stride=2, padding=1).requires_grad_(False).eval()
            self.tail = nn.Sequential(nn.Conv2d(5, 6, 3, stride=2, padding=1), nn.BatchNorm2d(6))


@pytest.fixture(scope="module")
def store() -> Pixels:
    return np.random.default_rng(0).integers(0, 256, (COUNT, SIDE, SIDE, 3), dtype=np.uint8)


def context(cache: Path | None, **changes: Any) -> RunContext:
    settings: dict[str, Any] = {
        "seed": 0,
        "image_size": SIZE,
        "views": "bank:3",
        "store_key": "store-a",
        "cache_dir": cache,
        "load_backbone": SmallBackbone,
    }
    return RunContext(**{**settings, **changes})


def banks(cache: Path) -> list[Path]:
    return sorted(path for path in (cache / "banks").iterdir() if path.is_dir())


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
    source = bank.open_views(context(tmp_path), store)
    ids = np.array([69, 0, 64, 63])
    torch.testing.assert_close(source.test(ids), expected_view(store, ids.tolist(), None), rtol=2e-3, atol=2e-3)
    pair = source.pair(ids, 5, 7)
    assert pair.shape == (8, 5, 8, 8)
    assert pair.dtype == torch.float32
    assert pair.is_contiguous(memory_format=torch.channels_last)
    chosen = np.concatenate(bank.choose_views(ids, step=5, seed=7, views=3))
    for row, i, view in zip(pair, [*ids, *ids], chosen, strict=True):
        torch.testing.assert_close(row, expected_view(store, [int(i)], int(view))[0], rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("mode", ["bank:3", "online"])
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
    by_id = Counter(
        zip(*(c.tolist() for c in bank.choose_views(np.arange(24_000), step=0, seed=1, views=4)), strict=True)
    )
    ids = np.zeros(1, dtype=np.int64)
    by_step = Counter(
        tuple(int(c[0]) for c in bank.choose_views(ids, step=step, seed=1, views=4)) for step in range(6_000)
    )
    for counts, expected in ((by_id, 2000), (by_step, 500)):
        assert set(counts) == {(a, b) for a in range(4) for b in range(4) if a != b}
        assert max(abs(count - expected) for count in counts.values()) < 5 * expected**0.5


def test_second_opening_computes_nothing(tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another method or seed finds the bank."""
    first = bank.open_views(context(tmp_path), store).test(np.arange(5))
    monkeypatch.setattr(bank, "fill_bank", lambda *arguments: pytest.fail("built again"))
    events: list[Any] = []
    again = bank.open_views(context(tmp_path, seed=99, log=events.append), store).test(np.arange(5))
    assert torch.equal(first, again)
    assert not events


@pytest.mark.parametrize(
    "change",
    [
        {"store_key": "store-b"},
        {"image_size": 12},
        {"views": "bank:2"},
        {"augmentation": "geometric"},
        {"backbone": {"weights_sha256": "x"}},
        {"backbone": {"name": "other"}},
        {"backbone": {"mean": (0.5, 0.5, 0.5)}},
        {"backbone": {"std": (0.5, 0.5, 0.5)}},
    ],
)
def test_everything_that_shapes_a_bank_is_in_its_key(tmp_path: Path, store: Pixels, change: dict[str, Any]) -> None:
    bank.open_views(context(tmp_path), store)
    if "backbone" in change:
        other = SmallBackbone()
        for name, value in change["backbone"].items():
            setattr(other, name, value)
        change = {"load_backbone": lambda: other}
    bank.open_views(context(tmp_path, **change), store)
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

    bank.open_views(context(tmp_path, load_backbone=lambda: load(1.0)), store)
    bank.open_views(context(tmp_path, load_backbone=lambda: load(1.0)), store)
    assert len(banks(tmp_path)) == 1
    bank.open_views(context(tmp_path, load_backbone=lambda: load(2.0)), store)
    assert len(banks(tmp_path)) == 2


def test_the_trained_tail_shapes_features_and_not_a_bank(tmp_path: Path, store: Pixels) -> None:
    def load() -> SmallBackbone:
        network = SmallBackbone()
        with torch.no_grad():
            network.tail[0].weight.zero_()
        return network

    images = ImageView(ids=np.arange(3), store=store)
    plain, other = context(tmp_path), context(tmp_path, load_backbone=load)
    assert not np.array_equal(bank.frozen_features(plain, images), bank.frozen_features(other, images))
    for ctx in (plain, other):
        bank.open_views(ctx, store)
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
    if loader.load_kernels() is None:
        pytest.skip("no compiler on this machine")
    bank.open_views(context(tmp_path), store)
    changed = tmp_path / "changed.c"
    changed.write_text("/* another version */")
    monkeypatch.setattr(loader, "SOURCES", (changed,))
    bank.open_views(context(tmp_path), store)
    assert len(banks(tmp_path)) == 2


def test_bytes_do_not_depend_on_the_number_of_threads(
    tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One, two or three threads, whatever torch's own setting: the same file."""
    contents = set()
    for threads in (1, 2, 3):
        monkeypatch.setattr(bank, "available_cores", lambda n=threads: n)
        cache = tmp_path / str(threads)
        bank.open_views(context(cache), store)
        contents.add((banks(cache)[0] / cachefile.DATA).read_bytes())
    assert len(contents) == 1


@pytest.mark.parametrize(
    ("cores", "image_size", "threads"),
    [(1, 128, 1), (2, 128, 2), (64, 128, 6), (64, 224, 6), (64, 96, 10), (64, 28, 64), (64, 512, 3), (64, 2048, 1)],
)
def test_building_threads_share_a_budget_of_memory(cores: int, image_size: int, threads: int) -> None:
    """As many as there are cores while images are small; large ones leave room for a few threads, or for one."""
    assert bank.building_threads(cores, image_size) == threads


def test_a_machine_with_many_cores_builds_within_the_budget(
    tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def remember(*arguments: Any, threads: int) -> Any:
        asked.append(threads)
        return run_chunks(*arguments, threads=threads)

    monkeypatch.setattr(bank, "available_cores", lambda: 64)
    monkeypatch.setattr(bank, "BUILDING_MEMORY", 3 * bank.CHUNK_MEMORY * SIZE**2 // 128**2)
    monkeypatch.setattr(bank, "run_chunks", remember)
    bank.open_views(context(tmp_path), store)
    assert asked == [3]


def test_size_is_said_before_and_progress_during_the_work(tmp_path: Path, store: Pixels) -> None:
    events: list[Any] = []
    bank.open_views(context(tmp_path, log=events.append), store)
    assert events[0]["type"] == "note"
    size = COUNT * 4 * 8 * 8 * 5 * 2
    assert format_bytes(size) in events[0]["message"]
    progress = [event for event in events if event["type"] == "progress"]
    assert progress[0]["done"] == 0
    assert progress[-1]["done"] == progress[-1]["total"] == COUNT * 4
    assert [event["done"] for event in progress] == sorted(event["done"] for event in progress)


def test_a_disk_that_is_too_small_is_one_sentence(
    tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = type(shutil.disk_usage(tmp_path))(10**9, 10**9 - 1000, 1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
    with pytest.raises(DiskSpaceError, match=r"needs 67.3 MB \(179 kB and 67.1 MB that stay free\), but only 1 kB"):
        bank.open_views(context(tmp_path), store)
    assert not banks(tmp_path)


def test_a_failed_build_leaves_nothing_behind(tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in the middle: no directory that could be taken for a bank, and the next attempt succeeds."""

    def fail_late(*arguments: Any, **settings: Any) -> Any:
        calls.append(1)
        if len(calls) > 5:
            raise RuntimeError("power cut")
        return augment(*arguments, **settings)

    calls: list[int] = []
    monkeypatch.setattr(bank, "augment", fail_late)
    with pytest.raises(RuntimeError, match="power cut"):
        bank.open_views(context(tmp_path), store)
    assert not banks(tmp_path)
    monkeypatch.setattr(bank, "augment", augment)
    bank.open_views(context(tmp_path), store)
    assert len(banks(tmp_path)) == 1


def test_a_disk_that_fills_up_during_the_work_is_one_sentence(
    tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are claimed before anything is written through the map, where a full disk would end the process."""

    def no_room(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", no_room)
    monkeypatch.setattr(bank, "fill_bank", lambda *arguments: pytest.fail("began to write"))
    with pytest.raises(DiskSpaceError, match="ran full"):
        bank.open_views(context(tmp_path), store)
    assert not banks(tmp_path)


def test_a_cache_of_somebody_else_can_be_read(tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise PermissionError

    first = bank.open_views(context(tmp_path), store).test(np.arange(3))
    monkeypatch.setattr(os, "utime", refuse)
    assert torch.equal(first, bank.open_views(context(tmp_path), store).test(np.arange(3)))


def test_a_bank_that_is_cleared_while_it_is_opened_is_built_again(
    tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank.open_views(context(tmp_path), store)
    calls: list[Path] = []

    def clear_first(file: Path) -> None:
        if not calls:
            shutil.rmtree(file.parent)
        calls.append(file)

    monkeypatch.setattr(cachefile, "touch", clear_first)
    assert len(bank.open_views(context(tmp_path), store).test(np.arange(3))) == 3
    assert len(calls) == 2


@pytest.mark.parametrize("keep", [0, 50, -1, None], ids=["empty", "half a header", "a byte short", "no array"])
def test_a_damaged_bank_is_built_again(tmp_path: Path, store: Pixels, keep: int | None) -> None:
    first = bank.open_views(context(tmp_path), store).test(np.arange(COUNT))
    file = banks(tmp_path)[0] / cachefile.DATA
    content = file.read_bytes()
    file.write_bytes(content[:keep] if keep is not None else bytes(len(content)))
    assert torch.equal(bank.open_views(context(tmp_path), store).test(np.arange(COUNT)), first)
    assert file.read_bytes() == content


def test_leftovers_of_a_killed_build_are_cleared(tmp_path: Path, store: Pixels) -> None:
    bank.open_views(context(tmp_path), store)
    home = banks(tmp_path)[0]
    left = home.with_name(f".tmp-{home.name}")
    home.rename(left)
    (left / cachefile.META).unlink()
    bank.open_views(context(tmp_path), store)
    assert banks(tmp_path) == [home]


def test_leftovers_of_a_killed_build_are_gone_before_the_disk_is_measured(
    tmp_path: Path, store: Pixels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a large build that was killed would have no room to be repeated."""
    bank.open_views(context(tmp_path), store)
    home = banks(tmp_path)[0]
    left = home.with_name(f".tmp-{home.name}")
    home.rename(left)
    usage = type(shutil.disk_usage(tmp_path))
    killed = left / cachefile.DATA
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 0, 1000 if killed.exists() else 10**9))
    bank.open_views(context(tmp_path), store)
    assert banks(tmp_path) == [home]


def _open_in_child(cache: str, pixels: Pixels, queue: Any) -> None:
    events: list[Any] = []
    source = bank.open_views(context(Path(cache), log=events.append), pixels)
    built = any(event.get("type") == "progress" for event in events)
    queue.put((built, source.test(np.arange(3)).sum().item()))


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
    assert sum(built for built, _ in answers) == 1
    assert len({total for _, total in answers}) == 1


def test_bank_is_mapped_and_not_loaded(tmp_path: Path, store: Pixels) -> None:
    source = bank.open_views(context(tmp_path), store)
    assert isinstance(source, bank.BankViews)
    assert isinstance(source.outputs, np.memmap)
    assert not source.outputs.flags.writeable


def test_frozen_features_are_the_pretrained_networks(tmp_path: Path, store: Pixels) -> None:
    """Pooled output in evaluation mode, for the ids asked for, stored, whatever was trained since."""
    ctx = context(tmp_path)
    ids = np.array([3, 69, 1])
    images = ImageView(ids=ids, store=store)
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
    source = bank.open_views(context(tmp_path, store_key=""), store)
    assert source.test(np.arange(2)).shape == (2, 5, 8, 8)
    assert not (tmp_path / "banks").exists()
    assert bank.open_views(context(None), store).test(np.arange(1)).shape == (1, 5, 8, 8)


@pytest.mark.parametrize(
    "views", ["bank", "bank:1", "bank:x", "offline", "bank:-3", "", "bank:²", "bank:1025", "bank:" + 5000 * "9"]
)
def test_views_that_do_not_exist_are_refused(views: str) -> None:
    with pytest.raises(ConfigError, match="views must be 'online' or 'bank:V' with V from 2 to 1024"):
        parse_views(views)


def test_views_that_exist() -> None:
    assert [parse_views(views) for views in ("online", "bank:2", "bank:1024")] == [None, 2, 1024]
