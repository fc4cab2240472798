"""Stored prefix outputs: the bank of augmented views for training, the test views, and frozen features.

Views are made once and shared by every method, seed and concurrent run, because nothing that shapes them depends on
these: the key is the image store, the images that are for training, the augmentation, the prefix and its weights (their
values, whatever the backbone calls itself), the image size, the kernels and a constant seed. Each view of all training
images is a file of its own, so banks of 4 and of 16 views share files, and a killed build continues where it was.
Images of a dataset's own test part have a test view and no others. Everything is memory-mapped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.core.cached_arrays import Form, Recipe, keep_only, open_cached
from gcdbench.core.disk_space import format_bytes
from gcdbench.core.identity import digest
from gcdbench.core.open_files import allow_open_files
from gcdbench.core.places import disk_budget
from gcdbench.images.image_set import ImageSet
from gcdbench.models.backbone import Backbone
from gcdbench.models.kernels import kernels_key
from gcdbench.models.products import products_key
from gcdbench.views import eight_bit
from gcdbench.views.augmentation import Augmentation, augment, centre_view, find_augmentation
from gcdbench.views.budget import ViewSize, decide_views
from gcdbench.views.building import Progress, fill_rows, run_prefix
from gcdbench.views.context import ViewContext
from gcdbench.views.setting import ViewSetting, parse_views
from gcdbench.views.sources import OnlineViews, StoredViews, ViewSource

FORMAT = 3
"""Part of every key of a bank: raise it when the layout of a file changes."""

FEATURES_FORMAT = 2

BANK_SEED = 20_240_607
"""Constant, so that one bank serves all seeds of a sweep; the choice among its views is the run's own."""

FLOAT16, FLOAT32, UINT8 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.uint8)


def open_views(ctx: ViewContext, store: Pixels) -> ViewSource:
    """The views ``ctx.views`` asks for. Test views are made now where they are missing, training views when needed."""
    setting = parse_views(ctx.views)
    augmentation = find_augmentation(ctx.augmentation)
    if setting.kind == "auto":
        size = measure_views(ctx.backbone, ctx.image_size, ctx.device, images=len(store), rows=ctx.training_rows)
        setting = decide_views(size, disk_budget())
    if setting.kind == "online":
        return OnlineViews(ctx.backbone, store, augmentation, ctx.image_size, ctx.device)
    bank = Bank(ctx, store, augmentation, setting)
    return StoredViews(
        setting,
        open_window=bank.open_window,
        rows_of=bank.rows_of,
        decode=bank.decode,
        outputs=open_test_views(ctx, store),
        device=ctx.device,
    )


def measure_views(backbone: Backbone, image_size: int, device: str, *, images: int, rows: IntArray | None) -> ViewSize:
    """How much room views of these images take."""
    channels, height, width = _output_shape(backbone, image_size, device)
    training = images if rows is None else len(rows)
    return ViewSize(images=images, training=training, height=height, width=width, channels=channels)


def _output_shape(backbone: Backbone, image_size: int, device: str) -> tuple[int, int, int]:
    """(c, h, w) of the prefix's output."""
    backbone.prefix.to(device)
    channels, height, width = run_prefix(backbone, torch.zeros(1, 3, image_size, image_size, device=device)).shape[1:]
    return channels, height, width


class Bank:
    """The training views of a store under one setting."""

    def __init__(self, ctx: ViewContext, store: Pixels, augmentation: Augmentation, setting: ViewSetting) -> None:
        self._ctx = ctx
        self._store = store
        self._augmentation = augmentation
        self._setting = setting
        self._rows = np.arange(len(store)) if ctx.training_rows is None else np.asarray(ctx.training_rows)
        self._shape = _output_shape(ctx.backbone, ctx.image_size, ctx.device)
        self._progress = Progress(ctx, "view bank")

    def rows_of(self, ids: IntArray) -> IntArray:
        """Where images stand among the training images."""
        rows = np.searchsorted(self._rows, ids)
        if not np.array_equal(self._rows[np.minimum(rows, len(self._rows) - 1)], ids):
            raise ValueError("Training views were requested for images that are not for training.")
        return rows

    def decode(self, drawn: NDArray[Any]) -> NDArray[Any]:
        """(B, h, w, c) of stored rows."""
        channels, height, width = self._shape
        return drawn if self._setting.kind == "bank" else eight_bit.decode(drawn, height, width, channels)

    def open_window(self, first: int) -> Sequence[NDArray[Any]]:
        """The stored views ``first`` .. ``first + V − 1``, each over all training images; made where missing."""
        count = self._setting.count
        recipe = self._recipe(range(first, first + count))
        cache = _cache(self._ctx)
        if self._setting.fresh and cache is not None:
            # Another run may be some epochs ahead, and what it has made will be needed here.
            ahead = {_name(draw) for draw in range(first, first + 2 * count)}
            keep_only(cache, recipe, ahead)
        allow_open_files(count)
        return list(open_cached(cache, recipe).values())

    def _recipe(self, draws: range) -> Recipe:
        ctx, count = self._ctx, len(self._rows)
        channels, height, width = self._shape
        form = Form(shape=(count, height, width, channels), dtype=FLOAT16)
        if self._setting.kind != "bank":
            form = Form(shape=(count, eight_bit.record_bytes(height, width, channels)), dtype=UINT8)
        identity = {
            **_identity(ctx, ctx.backbone, ctx.backbone.prefix),
            "augmentation": self._augmentation.key,
            "seed": BANK_SEED,
            "rows": "all" if count == len(self._store) else hashlib.sha256(self._rows.tobytes()).hexdigest(),
            # A rolling bank throws old views away, which a plain one would want to keep.
            "rolling": bool(self._setting.fresh),
        }
        return Recipe(
            kind="banks",
            key=_key(identity, form, FORMAT),
            subject="The view bank",
            title="view bank" + ("" if form.dtype == FLOAT16 else ", rolling" if self._setting.fresh else ", 8 bits"),
            about={"identity": identity, "images": count, "stored": self._setting.kind},
            forms={_name(draw): form for draw in draws},
            fill=self._fill,
            begin=self._begin,
            waiting=lambda: _note(ctx, "waiting for another process that is building this view bank"),
            note=lambda text: _note(ctx, text),
        )

    def _begin(self, names: tuple[str, ...], size: int) -> None:
        images = f"{len(names)} views of {len(self._rows)} images"
        _note(self._ctx, f"building a view bank: {images}, {format_bytes(size)}")
        self._progress.begin(len(names) * len(self._rows))

    def _fill(self, name: str, array: NDArray[Any]) -> None:
        """Write one view of every training image."""
        network, size = self._ctx.backbone, self._ctx.image_size

        def compute(pixels: Pixels, ids: IntArray) -> NDArray[Any]:
            images = augment(
                pixels,
                augmentation=self._augmentation,
                ids=ids,
                draw=_draw(name),
                seed=BANK_SEED,
                size=size,
                mean=network.mean,
                std=network.std,
            )
            hidden = run_prefix(network, images.to(self._ctx.device)).permute(0, 2, 3, 1)
            if self._setting.kind == "bank":
                return hidden.to(torch.float16).cpu().numpy()
            return eight_bit.encode(hidden.cpu().numpy())

        fill_rows(self._ctx, self._store, self._rows, array, compute, self._progress)


def _name(draw: int) -> str:
    return f"view-{draw:05d}"


def _draw(name: str) -> int:
    return int(name.removeprefix("view-"))


def open_test_views(ctx: ViewContext, store: Pixels) -> NDArray[np.float16]:
    """(N, h, w, c): the test view of every image, whatever the number and the kind of training views."""
    backbone = ctx.backbone
    channels, height, width = _output_shape(backbone, ctx.image_size, ctx.device)
    form = Form(shape=(len(store), height, width, channels), dtype=FLOAT16)
    identity = _identity(ctx, backbone, backbone.prefix)
    progress = Progress(ctx, "test views")

    def compute(pixels: Pixels, ids: IntArray) -> NDArray[Any]:
        images = centre_view(pixels, size=ctx.image_size, mean=backbone.mean, std=backbone.std)
        hidden = run_prefix(backbone, images.to(ctx.device))
        return hidden.permute(0, 2, 3, 1).to(torch.float16).cpu().numpy()

    recipe = Recipe(
        kind="banks",
        key=_key(identity, form, FORMAT),
        subject="The file of test views",
        title="test views",
        about={"identity": identity, "images": len(store)},
        forms={"test": form},
        fill=lambda name, array: fill_rows(ctx, store, np.arange(len(store)), array, compute, progress),
        begin=lambda names, size: progress.begin(len(store)),
        waiting=lambda: _note(ctx, "waiting for another process that is making the test views"),
        note=lambda text: _note(ctx, text),
    )
    return open_cached(_cache(ctx), recipe)["test"]


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
    identity, form = _identity(ctx, backbone, backbone), Form(shape=(len(store), backbone.channels), dtype=FLOAT32)
    progress = Progress(ctx, "frozen features")

    def compute(pixels: Pixels, ids: IntArray) -> NDArray[Any]:
        views = centre_view(pixels, size=ctx.image_size, mean=backbone.mean, std=backbone.std)
        hidden = run_prefix(backbone, views.to(ctx.device))
        with torch.no_grad():
            return backbone.run_tail(hidden).pooled.cpu().numpy()

    recipe = Recipe(
        kind="features",
        key=_key(identity, form, FEATURES_FORMAT),
        subject="The file of frozen features",
        title="frozen features",
        about={"identity": identity},
        forms={"data": form},
        fill=lambda name, array: fill_rows(ctx, store, np.arange(len(store)), array, compute, progress),
        begin=lambda names, size: progress.begin(len(store)),
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
    """What shapes an array that ``network``, the whole backbone or its prefix, makes of the store."""
    device = torch.device(ctx.device)
    products = products_key(network, trained_stage=network is backbone) if device.type == "cpu" else ""
    return {
        "store": ctx.store_key,
        "backbone": backbone.name,
        "weights": backbone.weights_sha256,
        # A backbone says its name and hash itself, and a plugin may change without changing them.
        "state": state_digest(network),
        "image_size": ctx.image_size,
        "mean": backbone.mean,
        "std": backbone.std,
        "device": device.type,
        # Compiled and plain kernels differ in the last bits, and so may two versions of the compiled ones.
        "kernels": kernels_key(),
        **({"products": products} if products else {}),
    }


def _key(identity: Mapping[str, Any], form: Form, number: int) -> str:
    return digest({"format": number, "shape": form.shape, "dtype": form.dtype.str, **identity})[:24]


def _cache(ctx: ViewContext) -> Path | None:
    """Where arrays are kept; None when the store has no identity to file them under."""
    return ctx.cache_dir if ctx.store_key else None


def _note(ctx: ViewContext, text: str) -> None:
    ctx.log({"type": "note", "message": text})
