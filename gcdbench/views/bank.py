"""Where the training engine gets its views: made afresh each step, or drawn from a bank of stored prefix outputs.

A bank holds, for every image of a store, V augmented views and the test view, each as the output of the frozen
prefix in float16. It is memory-mapped, built once, and shared by every method, seed and concurrent run, because
nothing that shapes it depends on them: its key is the image store, the augmentation, the prefix and its weights
(their values, whatever the backbone calls itself), the image size, V, the kernels and a constant seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.core.cached_arrays import Form, Recipe, open_cached
from gcdbench.core.disk_space import format_bytes
from gcdbench.core.identity import digest
from gcdbench.core.work import available_cores
from gcdbench.images.image_set import ImageSet
from gcdbench.models.backbone import Backbone
from gcdbench.models.kernels.loader import kernels_key
from gcdbench.views.augmentation import Augmentation, augment, centre_view, find_augmentation
from gcdbench.views.context import ViewContext
from gcdbench.views.draws import random_words
from gcdbench.views.setting import parse_views
from gcdbench.views.threads import run_chunks

FORMAT = 2
"""Part of every key: raise it when the layout of a file changes."""

FLOAT32 = np.dtype(np.float32)

BANK_SEED = 20_240_607
"""Constant, so that one bank serves all seeds of a sweep; the choice among its views is the run's own."""

CHUNK_PIXELS = 64 * 128 * 128
"""Pixels that go through the network at once: enough to keep it busy, few enough for a laptop's memory."""

CHUNK_MEMORY = 170 * 2**20
"""Bytes that CHUNK_PIXELS hold in activations on their way through Lite0's prefix; ResNet-18's takes less."""

BUILDING_MEMORY = 2**30
"""Bytes for the activations of all building threads; the rest of a run then stays well below 2 GiB in all."""


class ViewSource(Protocol):
    """Prefix outputs of views, by sample id."""

    def pair(self, ids: IntArray, step: int, seed: int) -> Tensor:
        """(2B, c, h, w) float32: two different views of each image, view 1 of all, then view 2 of all.

        A function of (seed, step, id) alone.
        """

    def test(self, ids: IntArray) -> Tensor:
        """(B, c, h, w) float32: the test view of each image."""


def chunk_size(image_size: int) -> int:
    """Images that go through the network at once."""
    return max(CHUNK_PIXELS // image_size**2, 8) if image_size > 128 else 64


def building_threads(cores: int, image_size: int) -> int:
    """Threads that build at once: one a core, as far as their activations fit into memory, and at least one."""
    chunk = CHUNK_MEMORY * chunk_size(image_size) * image_size**2 // CHUNK_PIXELS
    return max(min(cores, BUILDING_MEMORY // chunk), 1)


def run_prefix(backbone: Backbone, images: Tensor) -> Tensor:
    """Prefix output (B, c, h, w) of standardised images, in chunks."""
    with torch.no_grad():
        return torch.cat([backbone.prefix(chunk) for chunk in torch.split(images, chunk_size(images.shape[-1]))])


class OnlineViews:
    """Views made afresh each step: the paper's setting."""

    def __init__(self, backbone: Backbone, store: Pixels, augmentation: Augmentation, size: int, device: str) -> None:
        self._backbone = backbone
        self._store = store
        self._augmentation = augmentation
        self._size = size
        self._device = device
        backbone.prefix.to(device)

    def pair(self, ids: IntArray, step: int, seed: int) -> Tensor:
        """(2B, c, h, w) float32, made now."""
        both = np.concatenate([ids, ids])
        draw = np.repeat(np.array([2 * step, 2 * step + 1]), len(ids))
        images = augment(
            self._store[both],
            augmentation=self._augmentation,
            ids=both,
            draw=draw,
            seed=seed,
            size=self._size,
            mean=self._backbone.mean,
            std=self._backbone.std,
        )
        return run_prefix(self._backbone, images.to(self._device))

    def test(self, ids: IntArray) -> Tensor:
        """(B, c, h, w) float32, made now."""
        network = self._backbone
        images = centre_view(self._store[ids], size=self._size, mean=network.mean, std=network.std)
        return run_prefix(network, images.to(self._device))


class BankViews:
    """Views drawn from a bank: ``outputs`` (N, V + 1, h, w, c) float16, the test view last."""

    def __init__(self, outputs: NDArray[np.float16], device: str) -> None:
        self.outputs = outputs
        self._views = outputs.shape[1] - 1
        self._device = device

    def pair(self, ids: IntArray, step: int, seed: int) -> Tensor:
        """(2B, c, h, w) float32, two different stored views of each image."""
        first, second = choose_views(ids, step=step, seed=seed, views=self._views)
        return self._fetch(np.concatenate([ids, ids]), np.concatenate([first, second]))

    def test(self, ids: IntArray) -> Tensor:
        """(B, c, h, w) float32, stored."""
        return self._fetch(ids, np.full(len(ids), self._views))

    def _fetch(self, ids: IntArray, views: IntArray) -> Tensor:
        # Stored channels-last, so the permuted tensor already has the layout the tail wants.
        rows = torch.from_numpy(self.outputs[ids, views])
        return rows.to(self._device).to(torch.float32).permute(0, 3, 1, 2)


def choose_views(ids: IntArray, *, step: int, seed: int, views: int) -> tuple[IntArray, IntArray]:
    """Two different views, 0 .. views − 1, for each id at this step; every ordered pair is equally likely."""
    words = random_words(seed, ids, step)
    first = (words >> np.uint64(32)) % np.uint64(views)
    shift = (words & np.uint64(0xFFFFFFFF)) % np.uint64(views - 1)
    second = (first + np.uint64(1) + shift) % np.uint64(views)
    return first.astype(np.int64), second.astype(np.int64)


def open_views(ctx: ViewContext, store: Pixels) -> ViewSource:
    """The views ``ctx.views`` asks for; a bank is built first where none fits."""
    count = parse_views(ctx.views)
    augmentation = find_augmentation(ctx.augmentation)
    if count is None:
        return OnlineViews(ctx.backbone, store, augmentation, ctx.image_size, ctx.device)
    return BankViews(open_bank(ctx, store, augmentation, count), ctx.device)


def open_bank(ctx: ViewContext, store: Pixels, augmentation: Augmentation, count: int) -> NDArray[np.float16]:
    """The bank (N, count + 1, h, w, c) of a store, built where it is missing."""
    backbone = ctx.backbone
    backbone.prefix.to(ctx.device)
    probe = run_prefix(backbone, torch.zeros(1, 3, ctx.image_size, ctx.image_size, device=ctx.device))
    channels, height, width = probe.shape[1:]
    form = Form(shape=(len(store), count + 1, height, width, channels), dtype=np.dtype(np.float16))
    identity = {
        **_identity(ctx, backbone, backbone.prefix),
        "augmentation": augmentation.key,
        "views": count,
        "seed": BANK_SEED,
    }
    recipe = Recipe(
        kind="banks",
        key=_key(identity, form),
        subject="The view bank",
        title="view bank",
        about={"identity": identity},
        forms={"data": form},
        fill=lambda name, outputs: fill_bank(ctx, backbone, store, augmentation, outputs),
        begin=lambda names, size: _note(
            ctx, f"building a view bank: {count} views of {len(store)} images, {format_bytes(size)}"
        ),
        waiting=lambda: _note(ctx, "waiting for another process that is building this view bank"),
        note=lambda text: _note(ctx, text),
    )
    return open_cached(_cache(ctx), recipe)["data"]


def fill_bank(
    ctx: ViewContext, backbone: Backbone, store: Pixels, augmentation: Augmentation, outputs: NDArray[np.float16]
) -> None:
    """Write every view's prefix output into ``outputs`` (N, V + 1, h, w, c)."""
    count = outputs.shape[1] - 1
    step = chunk_size(ctx.image_size)

    def fill_chunk(first: int, view: int) -> int:
        ids = np.arange(first, min(first + step, len(store)))
        pixels = np.asarray(store[ids[0] : ids[-1] + 1])
        if view == count:
            images = centre_view(pixels, size=ctx.image_size, mean=backbone.mean, std=backbone.std)
        else:
            images = augment(
                pixels,
                augmentation=augmentation,
                ids=ids,
                draw=view,
                seed=BANK_SEED,
                size=ctx.image_size,
                mean=backbone.mean,
                std=backbone.std,
            )
        hidden = run_prefix(backbone, images.to(ctx.device))
        outputs[ids[0] : ids[-1] + 1, view] = hidden.permute(0, 2, 3, 1).to(torch.float16).cpu().numpy()
        return len(ids)

    chunks = [(first, view) for first in range(0, len(store), step) for view in range(count + 1)]
    _run_with_progress(ctx, "view bank", fill_chunk, chunks, total=len(store) * (count + 1))


def frozen_features(ctx: ViewContext, images: ImageSet) -> NDArray[np.float32]:
    """(N, C) float32 pooled features of the whole pretrained network on the test view of ``images``.

    Made for the whole store and kept, so that every method on it starts from the same numbers at once.
    """
    # A copy of its own: the run's backbone may have been trained already. Building a network draws from torch's global
    # stream, even where its weights are loaded afterwards.
    with torch.random.fork_rng():
        backbone = ctx.load_backbone() if ctx.load_backbone is not None else ctx.backbone
    backbone.to(ctx.device).eval()
    store = images.store
    step = chunk_size(ctx.image_size)

    def fill(name: str, features: NDArray[np.float32]) -> None:
        def fill_chunk(first: int) -> int:
            pixels = np.asarray(store[first : first + step])
            images = centre_view(pixels, size=ctx.image_size, mean=backbone.mean, std=backbone.std)
            hidden = run_prefix(backbone, images.to(ctx.device))
            with torch.no_grad():
                features[first : first + step] = backbone.run_tail(hidden).pooled.cpu().numpy()
            return len(pixels)

        chunks = [(first,) for first in range(0, len(store), step)]
        _run_with_progress(ctx, "frozen features", fill_chunk, chunks, total=len(store))

    identity, form = _identity(ctx, backbone, backbone), Form(shape=(len(store), backbone.channels), dtype=FLOAT32)
    recipe = Recipe(
        kind="features",
        key=_key(identity, form),
        subject="The file of frozen features",
        title="frozen features",
        about={"identity": identity},
        forms={"data": form},
        fill=fill,
        note=lambda text: _note(ctx, text),
    )
    return np.asarray(open_cached(_cache(ctx), recipe)["data"][images.ids])


def state_digest(module: nn.Module) -> str:
    """sha256 of a module's parameters and buffers: names, types, shapes and values, in whatever order they come."""
    state = hashlib.sha256()
    tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    for name, tensor in sorted(tensors.items()):
        state.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        # As bytes, because numpy lacks some of torch's types.
        state.update(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy().data)
    return state.hexdigest()


def _identity(ctx: ViewContext, backbone: Backbone, network: nn.Module) -> dict[str, Any]:
    """What shapes an array that ``network``, the whole backbone or a part of it, makes of the store."""
    return {
        "store": ctx.store_key,
        "backbone": backbone.name,
        "weights": backbone.weights_sha256,
        # A backbone says its name and hash itself, and a plugin may change without changing them.
        "state": state_digest(network),
        "image_size": ctx.image_size,
        "mean": backbone.mean,
        "std": backbone.std,
        "device": torch.device(ctx.device).type,
        # Compiled and plain kernels differ in the last bits, and so may two versions of the compiled ones.
        "kernels": kernels_key(),
    }


def _key(identity: Mapping[str, Any], form: Form) -> str:
    return digest({"format": FORMAT, "shape": form.shape, "dtype": form.dtype.str, **identity})[:24]


def _cache(ctx: ViewContext) -> Path | None:
    """Where arrays are kept; None when the store has no identity to file them under."""
    return ctx.cache_dir if ctx.store_key else None


def _run_with_progress(
    ctx: ViewContext, task: str, work: Callable[..., int], chunks: Sequence[tuple[int, ...]], *, total: int
) -> None:
    done = 0
    threads = building_threads(available_cores(), ctx.image_size) if ctx.device == "cpu" else 1
    ctx.log({"type": "progress", "task": task, "done": 0, "total": total})
    for count in run_chunks(work, chunks, threads=threads):
        done += count
        ctx.log({"type": "progress", "task": task, "done": done, "total": total})


def _note(ctx: ViewContext, text: str) -> None:
    ctx.log({"type": "note", "message": text})
