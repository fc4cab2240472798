"""The one training loop: order, views, forward, losses, step, log, checkpoint, resume."""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from gcdbench.core.arrays import IntArray
from gcdbench.core.errors import TrainingError
from gcdbench.training import checkpoint, rng
from gcdbench.training.code import code_digest
from gcdbench.training.context import derive_seed
from gcdbench.training.distributed import average_gradients, broadcast_modules, wait_for_all, world
from gcdbench.training.loss_terms import not_finite, total_loss
from gcdbench.training.meter import Meter
from gcdbench.training.optimiser import make_optimiser
from gcdbench.training.sampler import batch_size_for, epoch_rng
from gcdbench.training.stopping import stop_asked
from gcdbench.views.reading import PairReader

if TYPE_CHECKING:
    from gcdbench.training.parametric import ParametricMethod


class Engine:
    """Trains one method; must run inside :func:`gcdbench.training.rng.isolated`.

    The position in the run is (epoch, step within the epoch, steps since the start) and, with the order of the
    current epoch, all that a resumed run needs in addition to the method's own state.
    """

    def __init__(self, method: ParametricMethod) -> None:
        self.method = method
        self.code = code_digest(type(method))  # now: files may be edited while this runs
        self.ctx = method.ctx
        self.config = method.ctx.training
        self.world = world()
        self.ids = method.train_images.ids
        self.labels = method.train_labels
        self.modules = method.trained_modules()
        self.optimiser = make_optimiser(self.modules.values(), self.config)
        self.parameters = self.optimiser.parameters
        self.view_seed = derive_seed(self.ctx.seed, "views")
        self.epoch = self.step = self.total_steps = 0
        self.order: IntArray = np.empty(0, dtype=np.int64)
        self.batch_size = 0
        self.meter = Meter()
        self.clock = checkpoint.Clock(self.ctx.checkpoint_seconds)

    def run(self) -> None:
        """Train until the last epoch is over."""
        broadcast_modules(self.modules.values())
        self._resume()
        self.meter.restart()
        with PairReader(self.method.views, self.view_seed) as self.reader:
            self._train_epochs()
        self._train(False)
        self._checkpoint()

    def _train_epochs(self) -> None:
        while self.epoch < self.config.epochs:
            self.method.views.start_epoch(self.epoch)
            if self.step == 0:
                self._start_epoch()
            self._set_batch_size()
            self.optimiser.lr = self.method.learning_rate(self.epoch)
            self._train(True)
            while self.step < self.steps:
                self._take_step()
                # Of several processes the first decides: one that left by itself would be missed in the next step.
                if self.world.main and stop_asked():
                    self._checkpoint()
                    raise KeyboardInterrupt
                if self.clock.due():
                    self._checkpoint()
            self._end_epoch()

    @property
    def steps(self) -> int:
        """Steps of the current epoch; what does not fill a batch is dropped."""
        return len(self.order) // self.batch_size

    def _start_epoch(self) -> None:
        # Evaluation mode: a method may want features of the whole training set here.
        self._train(False)
        rng.set_streams(self.ctx.seed, f"epoch/{self.epoch}")
        self.method.on_epoch_start(self.epoch)
        generator = epoch_rng(self.ctx.seed, self.epoch)
        self.order = np.asarray(self.method.sampler(self.labels, self.epoch, generator), dtype=np.int64)
        if not len(self.order):
            raise TrainingError(f"The sampler of {type(self.method).__name__} gave no image for epoch {self.epoch}.")
        self.meter.start_epoch()

    def _set_batch_size(self) -> None:
        wanted, size = self.config.batch_size, self.world.size
        if wanted % size:
            hint = f"use a multiple of {size}, for example --set batch_size={max(wanted // size, 1) * size}"
            raise TrainingError(f"A batch of {wanted} images cannot be split over {size} processes.", hint=hint)
        shrunk = batch_size_for(len(self.order), wanted, size)
        if len(self.order) < size:
            raise TrainingError(f"{len(self.order)} training images cannot be split over {size} processes.")
        if shrunk != wanted and shrunk != self.batch_size:
            self._log(
                type="note", message=f"An epoch has {len(self.order)} images: the batch is {shrunk}, not {wanted}."
            )
        self.batch_size = shrunk

    def _take_step(self) -> None:
        started = time.monotonic()
        epochs, method = self.config.epochs, self.method
        chosen = self._positions(self.step)
        then = self._own_ids(self.step + 1) if self.step + 1 < self.steps else None
        hidden = self.reader.take(self._own_ids(self.step), self.total_steps, then)
        hidden = hidden.to(method.device, non_blocking=True)

        rng.set_streams(self.ctx.seed, f"step/{self.total_steps}/{self.world.rank}")
        batch = method.forward(
            hidden,
            torch.from_numpy(self.ids[chosen]).to(method.device, non_blocking=True),
            torch.from_numpy(self.labels[chosen]).to(method.device, non_blocking=True),
            progress=(self.epoch + self.step / self.steps) / epochs,
            epoch=self.epoch,
            step=self.total_steps,
        )
        # The losses see the whole batch on every rank, so what they draw must be the same on every rank.
        rng.set_streams(self.ctx.seed, f"losses/{self.total_steps}")
        losses = method.losses(batch)
        total = total_loss(losses, type(method).__name__)
        self.optimiser.zero_grad()
        total.backward()  # type: ignore[no-untyped-call]
        average_gradients(self.parameters)
        values = self._check(losses)
        if self.config.clip_norm > 0:
            nn.utils.clip_grad_norm_(self.parameters, self.config.clip_norm)
        self.optimiser.step()
        method.after_step(batch)
        self.step += 1
        self.total_steps += 1
        self.meter.add(values, self.batch_size, time.monotonic() - started)
        self._report_progress(values)

    def _positions(self, step: int) -> IntArray:
        """Positions in the training images of a step's whole batch."""
        return self.order[step * self.batch_size : (step + 1) * self.batch_size]

    def _own_ids(self, step: int) -> IntArray:
        """Ids of this process's share of a step's batch."""
        share = self.batch_size // self.world.size
        return self.ids[self._positions(step)[self.world.rank * share : (self.world.rank + 1) * share]]

    def _check(self, losses: dict[str, Tensor]) -> dict[str, float]:
        """Values of the losses; stops the run, before a weight is changed, when one or the gradient is not finite."""
        norm = nn.utils.get_total_norm([p.grad for p in self.parameters if p.grad is not None])
        # The step's only transfer from the device.
        *numbers, gradient = torch.stack([*(v.detach().float() for v in losses.values()), norm.float()]).tolist()
        values = dict(zip(losses, numbers, strict=True))
        if all(map(math.isfinite, numbers)) and math.isfinite(gradient):
            return values
        kept = None
        if self.ctx.checkpoint_dir is not None and self.world.main:
            kept = self.ctx.checkpoint_dir / checkpoint.FAILED
            checkpoint.write_state(kept, self._state())
        epoch = f"{self.epoch + 1} of {self.config.epochs}"
        raise not_finite(values, gradient, step=self.total_steps, epoch=epoch, kept=kept)

    def _end_epoch(self) -> None:
        # BatchNorm's running statistics are each rank's own; the model that counts is rank 0's.
        broadcast_modules(self.modules.values())
        self.method.on_epoch_end(self.epoch)
        speed, left = self.meter.speed(), self._seconds_left(done_in_epoch=1.0)
        self._log(
            type="epoch",
            epoch=self.epoch,
            epochs=self.config.epochs,
            losses=self.meter.means(),
            lr=self.method.learning_rate(self.epoch),
            images_per_s=speed,
            step_seconds=self.meter.step_seconds,
            eta_s=left,
        )
        self.epoch += 1
        self.step = 0
        if self.clock.due():
            self._checkpoint()

    def _report_progress(self, values: dict[str, float]) -> None:
        if self.world.main and self.meter.progress_due():
            self._log(
                type="progress",
                epoch=self.epoch,
                epochs=self.config.epochs,
                step=self.step,
                steps=self.steps,
                losses=values,
                images_per_s=self.meter.speed(),
                eta_s=self._seconds_left(done_in_epoch=self.step / self.steps),
            )

    def _seconds_left(self, *, done_in_epoch: float) -> float:
        epochs_left = self.config.epochs - self.epoch - done_in_epoch
        return epochs_left * self.steps * self.batch_size / max(self.meter.speed(), 1e-9)

    def _train(self, mode: bool) -> None:
        self.method.backbone.train(mode)
        for module in self.modules.values():
            module.train(mode)

    def _log(self, **event: Any) -> None:
        if self.world.main:
            self.ctx.log(event)

    # The state on disk -------------------------------------------------------------------------------------------

    def _fingerprint(self) -> dict[str, Any]:
        """What a checkpoint must share with the run that continues it."""
        return {
            "method": type(self.method).__qualname__,
            "code": self.code,
            "config": repr(self.method.config),
            "seed": self.ctx.seed,
            "training": asdict(self.config),
            "views": self.ctx.views,
            "image_size": self.ctx.image_size,
            "precision": self.ctx.precision,
            "world": self.world.size,
            "k": self.method.k,
            "images": len(self.ids),
        }

    def _state(self) -> checkpoint.State:
        return {
            "fingerprint": self._fingerprint(),
            "numerics": self._numerics(),
            "epoch": self.epoch,
            "step": self.step,
            "total_steps": self.total_steps,
            "order": torch.from_numpy(self.order),
            "batch_size": self.batch_size,
            "meter": self.meter.state(),
            "modules": {name: module.state_dict() for name, module in self.modules.items()},
            "optimiser": self.optimiser.state_dict(),
            "method": self.method.training_state(),
            "generators": rng.generator_states(self.method),
        }

    def _numerics(self) -> dict[str, Any]:
        return {**self.ctx.numerics, "threads": torch.get_num_threads()}

    def _checkpoint(self) -> None:
        directory = self.ctx.checkpoint_dir
        if directory is not None and self.world.main:
            self.clock.time(lambda: checkpoint.save_latest(directory, self._state()))

    def _resume(self) -> None:
        directory = self.ctx.checkpoint_dir
        if directory is None or not self.ctx.resume:
            return
        state = checkpoint.load_latest(directory, lambda text: self._log(type="note", message=text))
        if state is None:
            return
        mine = self._fingerprint()
        differing = [key for key in mine if mine[key] != state["fingerprint"].get(key)]
        if differing == ["code"]:
            message = "The method's code has changed since its checkpoint was written: training starts again."
            self._log(type="note", message=message)
            return
        if differing:
            raise TrainingError(
                f"The checkpoint in {directory} belongs to another run: {', '.join(differing)} differ.",
                hint="start over with --no-resume, or delete it",
            )
        for name, module in self.modules.items():
            module.load_state_dict(state["modules"][name])
        self.optimiser.load_state_dict(state["optimiser"])
        self.method.load_training_state(state["method"])
        rng.restore_generators(self.method, state["generators"])
        self.epoch, self.step, self.total_steps = state["epoch"], state["step"], state["total_steps"]
        self.order, self.batch_size = state["order"].numpy(), state["batch_size"]
        self.meter.load_state(state["meter"])
        self._log(type="resumed", epoch=self.epoch, step=self.step, total_steps=self.total_steps)
        before, here = state.get("numerics") or {"threads": state.get("threads")}, self._numerics()
        # What either side did not record cannot be compared.
        other = [key for key in here if here[key] and before.get(key) and here[key] != before[key]]
        if other:
            told = "; ".join(f"{key} was {before[key]}, is {here[key]}" for key in other)
            self._log(
                type="note",
                message=f"The checkpoint was made with other numerics ({told}): sums are rounded differently, so the "
                "result may differ in the last digits.",
            )
        wait_for_all()
