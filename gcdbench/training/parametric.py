"""The base of every method that trains the backbone's tail under K cosine prototypes.

A subclass owes one thing: ``losses(batch)``. Everything else has a default and may be overridden; what each hook is
for is described in ``docs/write/method.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.core.errors import ConfigError, TrainingError
from gcdbench.images.image_set import ImageSet
from gcdbench.models.backbone import Backbone, TailOutput
from gcdbench.models.heads import HEADS, Head, Projector, Prototypes, nearest_prototype
from gcdbench.models.kernels import kernels_note
from gcdbench.splits.data import GCDData
from gcdbench.training import rng
from gcdbench.training.batch import Batch
from gcdbench.training.distributed import gather_objects, gather_views, world
from gcdbench.training.method import Prediction, TaskInfo
from gcdbench.training.naming import State, load_states, merge_states
from gcdbench.training.precision import autocast, check_precision
from gcdbench.training.sampler import balanced_order
from gcdbench.training.schedules import cosine_lr

if TYPE_CHECKING:
    from gcdbench.training.context import RunContext
    from gcdbench.views.sources import ViewSource

CHUNK = 256
"""Images that go through the tail at once when nothing is learnt."""


class ParametricMethod:
    """Tail, projector and prototypes, trained on the sum of ``losses``; predicts by the nearest prototype.

    Set by :meth:`fit` before the first step: ``backbone``, ``projector``, ``prototypes``, ``extras`` (what
    :meth:`extra_modules` gave), ``k``, ``views``, ``train_images`` and ``train_labels`` (−1 where unlabelled).
    """

    temperature = 0.1
    """Divides the cosines where ``predict`` turns them into a confidence."""

    predictor = "cosine/1"
    """How ``predict`` reads ``prototypes``: a key of :data:`gcdbench.models.heads.HEADS`."""

    anchored = True
    """Whether the first K_old clusters are tied to the old classes, in order."""

    projector_hidden = 2048
    projector_out = 256

    backbone: Backbone
    projector: Projector
    prototypes: Prototypes
    views: ViewSource
    train_images: ImageSet
    train_labels: IntArray

    def __init__(self, config: Any, task: TaskInfo, ctx: RunContext) -> None:
        if ctx.views == "none":
            raise ConfigError(
                f"{type(self).__name__} is trained, but its MethodSpec does not say so.", hint="Add trained=True to it."
            )
        self.config = config
        self.task = task
        self.ctx = ctx
        self.device = torch.device(ctx.device)
        self.extras: dict[str, nn.Module] = {}
        self.k = 0
        nothing = np.empty(0, dtype=np.int64)
        self.train_images = ImageSet(ids=nothing, store=np.empty((0, 1, 1, 3), dtype=np.uint8))
        self.train_labels = nothing

    # What a method says ------------------------------------------------------------------------------------------

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """Weighted terms by name, scalars; the engine minimises their sum and logs each of them."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it minimises: define losses(batch)")

    def feature(self, tail: TailOutput) -> Tensor:
        """(2B, C) what the heads are given in training. At test time it is always ``tail.pooled``."""
        return tail.pooled

    def extra_modules(self) -> dict[str, nn.Module]:
        """Modules that exist in training only, by name; called once, when ``backbone`` and ``k`` are known.

        They are optimised with the rest. Their default initialisation is reproducible without further care.
        """
        return {}

    def sampler(self, labels: IntArray, epoch: int, generator: np.random.Generator) -> IntArray:
        """Positions (in ``train_images``) an epoch shows, in order. labels: (N,), −1 where unlabelled."""
        return balanced_order(labels, generator)

    def learning_rate(self, epoch: int) -> float:
        """The rate of an epoch."""
        config = self.ctx.training
        return cosine_lr(epoch, config.epochs, config.lr, config.lr * config.min_lr_ratio)

    def on_epoch_start(self, epoch: int) -> None:
        """Called before an epoch is ordered; not called again when a run is resumed within the epoch."""

    def on_epoch_end(self, epoch: int) -> None:
        """Called after the last step of an epoch."""

    def after_step(self, batch: Batch) -> None:
        """Called after each optimiser step with the batch that led to it."""

    def training_state(self) -> dict[str, Any]:
        """What a checkpoint must hold in addition to modules and generators: tensors and plain values."""
        return {}

    def load_training_state(self, state: dict[str, Any]) -> None:
        """The inverse of :meth:`training_state`."""

    def count_clusters(self, data: GCDData) -> int:
        """K: the task's, or an estimate from the pretrained features when the protocol keeps it secret.

        Not from trained ones: training pulls labelled images together, and the others then look like many classes.
        """
        if self.task.k is not None:
            return self.task.k
        from gcdbench.views.bank import frozen_features

        if self.ctx.estimate_k is None:
            raise RuntimeError("this run cannot estimate K: its context was made without an estimator")
        labelled, unlabelled = (frozen_features(self.ctx, images) for images in (data.labelled, data.unlabelled))
        return self.ctx.estimate_k(labelled, data.labels, unlabelled, self.task.k_old, self.ctx.rng("estimate-k"))

    # What the base does ------------------------------------------------------------------------------------------

    def fit(self, data: GCDData) -> None:
        """Train from labelled and unlabelled images."""
        from gcdbench.training.engine import Engine

        check_precision(self.ctx.device, self.ctx.precision)
        self.train_images, self.train_labels = data.train()
        if not len(self.train_images):
            raise TrainingError("There is no image to train on.", hint="look at the split with `gcdbench data show`")
        with rng.isolated():
            # Modules before views: a setting that a method refuses must not cost the minutes that a bank takes.
            self.backbone = self.ctx.backbone.to(self.device)
            self._build(self.count_clusters(data))
            self._open(data.labelled.store)
            Engine(self).run()

    def forward(self, hidden: Tensor, ids: Tensor, labels: Tensor, *, progress: float, epoch: int, step: int) -> Batch:
        """One pass through tail and heads.

        hidden: (2b, c, h, w), the prefix's output of this process's share of the batch.
        ids, labels: (B,) of the whole batch; the result has the rows of the whole batch, too.
        """
        with autocast(self.ctx.device, self.ctx.precision):
            tail = self.backbone.run_tail(hidden)
            feature = self.feature(tail)
            projection, logits = self.projector(feature), self.prototypes(feature)
        # Losses are float32 whatever the precision of the network.
        return Batch(
            ids=ids,
            labels=labels,
            tail=TailOutput(map=self.share(tail.map.float()), pooled=self.share(tail.pooled.float())),
            feature=self.share(feature.float()),
            projection=self.share(projection.float()),
            logits=self.share(logits.float()),
            progress=progress,
            epoch=epoch,
            step=step,
            k_old=self.task.k_old,
        )

    def share(self, rows: Tensor) -> Tensor:
        """Rows of this process (two views) -> rows of the whole batch, with gradient, in the order of ``Batch``.

        Needed only for what ``feature`` keeps aside for ``losses``; nothing happens in a single process.
        """
        return gather_views(rows)

    def embed(self, images: ImageSet) -> NDArray[np.float32]:
        """(N, C) pooled features of the test view, in evaluation mode."""
        self._open(images.store)
        return self._run_tail(images.ids)

    def predict(self, images: ImageSet) -> Prediction:
        """Nearest prototype of each image's test view; under several processes each does its share."""
        if not self.k:
            raise TrainingError("This method has no prototypes yet.", hint="call fit or load_state_dict first")
        self._open(images.store)
        here = world()
        parts = gather_objects(self._run_tail(images.ids[here.rank :: here.size]))
        pooled: NDArray[np.float32] = parts[0]
        if here.size > 1:
            pooled = np.empty((len(images), parts[0].shape[1]), dtype=np.float32)
            for rank, part in enumerate(parts):
                pooled[rank :: here.size] = part
        cluster, confidence = nearest_prototype(pooled, self.prototypes, self.temperature)
        return Prediction(
            ids=images.ids,
            cluster=cluster,
            k_hat=self.k,
            anchored=self.anchored,
            confidence=confidence,
            embedding=pooled,
        )

    def trained_modules(self) -> dict[str, nn.Module]:
        """Everything the optimiser changes, by name."""
        return {
            "tail": self.backbone.tail,
            "projector": self.projector,
            "prototypes": self.prototypes,
            **{f"extra.{name}": module for name, module in self.extras.items()},
        }

    def state_dict(self) -> State:
        """The deployable model: tail and prototypes, nothing else."""
        return merge_states({"tail": self.backbone.tail, "prototypes": self.prototypes})

    def load_state_dict(self, state: State) -> None:
        """Restore what :meth:`state_dict` gave; training-only modules stay as they are."""
        if not self.k:
            with rng.isolated():
                self.backbone = self.ctx.backbone.to(self.device)
                self._build(len(state["prototypes.weight"]))
        load_states({"tail": self.backbone.tail, "prototypes": self.prototypes}, state)

    def auxiliary_state(self) -> State:
        """What exists in training only: the projector and the extra modules."""
        return merge_states({"projector": self.projector, **self.extras})

    def load_auxiliary_state(self, state: State) -> None:
        """Restore what :meth:`auxiliary_state` gave, after :meth:`load_state_dict`."""
        load_states({"projector": self.projector, **self.extras}, state)

    def deployed_head(self) -> tuple[str, Head]:
        """What a saved model predicts with: a name of :data:`gcdbench.models.heads.KNOWN_HEADS`, and the module."""
        return self.predictor, self.prototypes

    def save_model(self, directory: Path) -> None:
        """Write the model so that it predicts without this method's code (see :mod:`gcdbench.models.model_file`)."""
        from gcdbench.training.saving import save_model

        save_model(self, directory)

    # Inner work --------------------------------------------------------------------------------------------------

    def _open(self, store: Pixels) -> None:
        """Backbone and view source for an image store; the source is kept while the store is the same."""
        from gcdbench.views.bank import open_views

        if getattr(self, "_store", None) is not store:
            if note := kernels_note():
                self.ctx.log({"type": "note", "message": note})
            self.backbone = self.ctx.backbone.to(self.device)
            self.views = open_views(self.ctx, store)
            self._store = store

    def _build(self, k: int) -> None:
        """Heads and extra modules, seeded from the run's seed alone."""
        if k < self.task.k_old:
            raise TrainingError(f"K = {k} is smaller than the {self.task.k_old} old classes.", hint="give a larger K")
        self.k = k
        init = self.ctx.generator("init")
        channels = self.backbone.channels
        self.projector = Projector(channels, init, hidden=self.projector_hidden, out=self.projector_out).to(self.device)
        self.prototypes = HEADS[self.predictor](channels, k, init).to(self.device)
        rng.set_streams(self.ctx.seed, "init/extra")
        self.extras = {name: module.to(self.device) for name, module in self.extra_modules().items()}
        if self.device.type == "cuda":
            # Tensor cores want it; on a CPU it was measured to be a tenth slower (ResNet-18) or no change (Lite0).
            self.backbone.tail.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def _run_tail(self, ids: IntArray) -> NDArray[np.float32]:
        """(N, C) pooled features of the test view."""
        pooled = np.empty((len(ids), self.backbone.channels), dtype=np.float32)
        done = 0
        for _, tail in self.test_passes(ids):
            pooled[done : done + len(tail.pooled)] = tail.pooled.float().cpu().numpy()
            done += len(tail.pooled)
        return pooled

    def test_passes(self, ids: IntArray) -> Iterator[tuple[Tensor, TailOutput]]:
        """What prefix and tail give for the test views of an open store's images, in chunks, in evaluation mode."""
        from gcdbench.views.reading import read_test_views

        training = self.backbone.training
        self.backbone.eval()
        try:
            # The prefix has the precision it has in training and in a bank, whatever the tail's is.
            for read in read_test_views(self.views, ids, CHUNK):
                hidden = read.to(self.device)
                with torch.no_grad(), autocast(self.ctx.device, self.ctx.precision):
                    tail = self.backbone.run_tail(hidden)
                yield hidden, tail
        finally:
            self.backbone.train(training)
