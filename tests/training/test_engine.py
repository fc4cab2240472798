"""The loop: determinism, exact resume, stopping at a bad loss, small data, what is logged."""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gcdbench.core.arrays import IntArray
from gcdbench.core.errors import TrainingError
from gcdbench.methods.configs import LegoGCDConfig, SimGCDConfig
from gcdbench.methods.legogcd import LegoGCD
from gcdbench.methods.simgcd import SimGCD
from gcdbench.testing.tiny import shrink, tiny_context, tiny_task
from gcdbench.training import checkpoint, engine
from gcdbench.training.batch import Batch
from gcdbench.training.code import code_digest
from gcdbench.training.method import Prediction
from gcdbench.training.optimiser import make_optimiser
from gcdbench.training.parametric import ParametricMethod

SmallSimGCD = shrink(SimGCD)


class Restless(shrink(LegoGCD)):  # type: ignore[misc]
    """Draws from every kind of random stream and keeps state of its own, so that resuming has much to get wrong."""

    def extra_modules(self) -> dict[str, nn.Module]:
        self.noise = self.ctx.generator("noise")
        self.shuffle = self.ctx.rng("shuffle")
        self.memory = torch.zeros(self.k)
        return {"gate": nn.Sequential(nn.Linear(self.backbone.channels, 1), nn.Dropout(0.5))}

    def on_epoch_start(self, epoch: int) -> None:
        self.offset = float(self.shuffle.random()) + float(self.embed(self.train_images).mean())

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        gate = self.extras["gate"](batch.feature).square().mean()
        scale = torch.rand((), generator=self.noise) + float(np.random.rand()) + self.offset  # noqa: NPY002
        return {**super().losses(batch), "gate": 0.1 * scale * gate + 0.01 * (batch.logits @ self.memory).mean()}

    def after_step(self, batch: Batch) -> None:
        super().after_step(batch)
        self.memory = 0.5 * self.memory + batch.logits.detach().mean(dim=0)

    def training_state(self) -> dict[str, Any]:
        return {**super().training_state(), "memory": self.memory, "offset": self.offset}

    def load_training_state(self, state: dict[str, Any]) -> None:
        super().load_training_state(state)
        self.memory, self.offset = state["memory"], state["offset"]


class Interrupted(BaseException):
    """Stands for the end of the process."""


def run(method: type[ParametricMethod] = SmallSimGCD, config: Any = None, **options: Any) -> Prediction:
    data, task, _ = tiny_task()
    trained = method(config or SimGCDConfig(), task, tiny_context(**options))
    trained.fit(data)
    return trained.predict(data.unlabelled)


def same(first: Prediction, second: Prediction) -> bool:
    return (
        np.array_equal(first.cluster, second.cluster)
        and first.embedding is not None
        and second.embedding is not None
        and first.embedding.tobytes() == second.embedding.tobytes()
    )


def test_one_seed_gives_one_result_and_two_seeds_two() -> None:
    assert same(run(seed=1), run(seed=1))
    assert not same(run(seed=1), run(seed=2))


def test_the_global_random_streams_neither_matter_nor_change() -> None:
    first = run()
    torch.rand(3)
    before = torch.get_rng_state()
    second = run()
    assert torch.equal(before, torch.get_rng_state())
    assert same(first, second)


@pytest.mark.parametrize("killed_at", [0, 1, 2, 3, 5, 8])
def test_resuming_after_any_step_ends_with_the_same_bits(tmp_path: Path, killed_at: int) -> None:
    """3 epochs of 3 steps; a checkpoint after every step, so that each kill resumes where it happened."""
    options: dict[str, Any] = {"epochs": 3, "config": LegoGCDConfig(ler_threshold=0.3)}
    whole = run(Restless, **options)

    class Killed(Restless):
        def losses(self, batch: Batch) -> dict[str, Tensor]:
            if batch.step == killed_at:
                raise Interrupted
            return super().losses(batch)

    Killed.__qualname__ = Restless.__qualname__
    kept: dict[str, Any] = {**options, "checkpoint_dir": tmp_path, "checkpoint_seconds": 0.0}
    events: list[Mapping[str, Any]] = []
    with pytest.raises(Interrupted):
        run(Killed, **kept)
    resumed = run(Restless, **kept, log=events.append)
    assert same(whole, resumed)
    assert [e["total_steps"] for e in events if e["type"] == "resumed"] == ([killed_at] if killed_at else [])


def test_a_finished_checkpoint_trains_no_further(tmp_path: Path) -> None:
    whole = run(checkpoint_dir=tmp_path)
    events: list[Mapping[str, Any]] = []
    assert same(whole, run(checkpoint_dir=tmp_path, log=events.append))
    assert not [e for e in events if e["type"] == "epoch"]


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    run(checkpoint_dir=tmp_path, seed=1)
    with pytest.raises(TrainingError, match="another run: seed differ"):
        run(checkpoint_dir=tmp_path, seed=2)


@pytest.mark.parametrize("given", [torch.zeros(()), None])
def test_losses_that_are_no_dictionary_are_refused(given: Tensor | None) -> None:
    class Single(SimGCD):
        def losses(self, batch: Batch) -> dict[str, Tensor]:
            return given  # type: ignore[return-value]

    with pytest.raises(TrainingError, match=r"losses\(\) of Single returned .*, not a dictionary"):
        run(Single)


def test_a_training_begun_with_other_code_starts_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "code_digest", lambda method: "before the loss was mended")
    run(checkpoint_dir=tmp_path)
    monkeypatch.undo()
    events: list[Mapping[str, Any]] = []
    again = run(checkpoint_dir=tmp_path, log=events.append)
    assert same(again, run())
    assert next(e["message"] for e in events if e["type"] == "note").startswith("The method's code has changed")
    assert not [e for e in events if e["type"] == "resumed"]


def test_the_digest_of_a_method_changes_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "made_up_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "method.py").write_text("class Method: pass")
    (package / "losses.py").write_text("weight = 1")
    monkeypatch.syspath_prepend(str(tmp_path))
    method = importlib.import_module("made_up_package.method").Method
    first = code_digest(method)
    assert code_digest(method) == first
    (package / "losses.py").write_text("weight = -1")
    assert code_digest(method) != first
    assert code_digest(type("Written", (), {"__module__": "a_console"})) == code_digest(object)


def test_epochs_after_a_resume_report_the_losses_of_the_whole_epoch(tmp_path: Path) -> None:
    def epochs(events: list[Mapping[str, Any]]) -> dict[int, Any]:
        return {e["epoch"]: e["losses"] for e in events if e["type"] == "epoch"}

    class Killed(SmallSimGCD):  # type: ignore[valid-type,misc]
        def losses(self, batch: Batch) -> dict[str, Tensor]:
            if batch.step == 4:
                raise Interrupted
            return super().losses(batch)

    Killed.__qualname__ = SmallSimGCD.__qualname__
    whole: list[Mapping[str, Any]] = []
    run(log=whole.append)
    parts: list[Mapping[str, Any]] = []
    kept: dict[str, Any] = {"checkpoint_dir": tmp_path, "checkpoint_seconds": 0.0, "log": parts.append}
    with pytest.raises(Interrupted):
        run(Killed, **kept)
    run(**kept)
    assert epochs(parts) == epochs(whole)


def test_every_epoch_says_each_loss_the_rate_the_speed_and_the_time_left() -> None:
    events: list[Mapping[str, Any]] = []
    started = time.monotonic()
    run(epochs=4, log=events.append)
    seconds = time.monotonic() - started
    epochs = [e for e in events if e["type"] == "epoch"]
    assert [e["epoch"] for e in epochs] == [0, 1, 2, 3]
    assert all(set(e["losses"]) == {"cls_u", "memax", "cls_s", "rep_u", "rep_s"} for e in epochs)
    assert all(e["epochs"] == 4 and e["images_per_s"] > 0 for e in epochs)
    assert all(e["step_seconds"] > 0 for e in epochs)
    assert sum(e["step_seconds"] for e in epochs) < seconds
    assert epochs[0]["lr"] == pytest.approx(0.1)
    assert epochs[-1]["eta_s"] == pytest.approx(0.0, abs=1e-6)
    assert epochs[0]["eta_s"] > 0


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_stops_the_run_with_step_and_values(tmp_path: Path, bad: float) -> None:
    class Hostile(SmallSimGCD):  # type: ignore[valid-type,misc]
        def losses(self, batch: Batch) -> dict[str, Tensor]:
            terms: dict[str, Tensor] = super().losses(batch)
            return {**terms, "hostile": batch.logits.sum() * (bad if batch.step == 4 else 0.0)}

    with pytest.raises(TrainingError, match=r"step 4 \(epoch 2 of 2\).*'hostile'.*cls_u = .*hostile = ") as caught:
        run(Hostile, checkpoint_dir=tmp_path)
    assert str(tmp_path / checkpoint.FAILED) in (caught.value.hint or "")
    state = checkpoint.read_state(tmp_path / checkpoint.FAILED)
    assert state["total_steps"] == 4
    assert all(v.isfinite().all() for module in state["modules"].values() for v in module.values())


@pytest.mark.parametrize(("first", "advised"), [(0, False), (4, True)])
def test_only_after_a_step_a_smaller_learning_rate_is_advised(first: int, advised: bool) -> None:
    """Before the first step no learning rate has had an effect."""

    class Hostile(SmallSimGCD):  # type: ignore[valid-type,misc]
        def losses(self, batch: Batch) -> dict[str, Tensor]:
            terms: dict[str, Tensor] = super().losses(batch)
            return {**terms, "hostile": batch.logits.sum() * (float("nan") if batch.step == first else 0.0)}

    with pytest.raises(TrainingError, match=rf"step {first} ") as caught:
        run(Hostile)
    hint = caught.value.hint or ""
    assert ("learning rate" in hint) == advised
    assert ("first batch" in hint) == (not advised)


def test_a_gradient_that_is_not_finite_stops_the_run_too(tmp_path: Path) -> None:
    class Hostile(SmallSimGCD):  # type: ignore[valid-type,misc]
        def losses(self, batch: Batch) -> dict[str, Tensor]:
            # 0 in value, but the square root has no slope at 0.
            return {**super().losses(batch), "root": (batch.logits.sum() * 0.0).sqrt()}

    with pytest.raises(TrainingError, match=r"step 0 .*the gradient is not finite \(cls_u"):
        run(Hostile)


@pytest.mark.parametrize(
    ("given", "said"),
    [({"x": torch.zeros(2)}, "'x' is not one"), ({"x": torch.zeros(())}, "nothing that depends"), ({}, "nothing that")],
)
def test_a_method_that_returns_something_else_is_told(given: dict[str, Tensor], said: str) -> None:
    class Wrong(SmallSimGCD):  # type: ignore[valid-type,misc]
        def losses(self, batch: Batch) -> dict[str, Tensor]:
            return given

    with pytest.raises(TrainingError, match=said):
        run(Wrong)


@pytest.mark.parametrize("images", [1, 2, 5, 47])
def test_fewer_images_than_a_batch_shrink_it_and_say_so(images: int) -> None:
    events: list[Mapping[str, Any]] = []
    steps: list[int] = []

    class Counting(SmallSimGCD):  # type: ignore[valid-type,misc]
        def after_step(self, batch: Batch) -> None:
            steps.append(len(batch.ids))

    data, task, _ = tiny_task(images=images)
    method = Counting(SimGCDConfig(), task, tiny_context(batch_size=128, epochs=2, log=events.append))
    method.fit(data)
    assert steps == [images, images]
    notes = [e["message"] for e in events if e["type"] == "note"]
    assert notes == [f"An epoch has {images} images: the batch is {images}, not 128."]


def test_what_does_not_fill_a_batch_is_dropped_and_each_batch_is_the_sampler_s() -> None:
    seen: list[np.ndarray] = []

    class Fixed(SmallSimGCD):  # type: ignore[valid-type,misc]
        def sampler(self, labels: IntArray, epoch: int, generator: np.random.Generator) -> IntArray:
            return np.arange(len(labels))[::-1][:39]

        def after_step(self, batch: Batch) -> None:
            assert torch.equal(batch.labels, torch.from_numpy(self.train_labels[batch.ids.numpy()]))
            seen.append(batch.ids.numpy())

    run(Fixed, epochs=1)
    assert [len(ids) for ids in seen] == [16, 16]
    assert np.concatenate(seen).tolist() == list(range(47, 15, -1))


def test_progress_grows_from_zero_towards_one() -> None:
    seen: list[float] = []

    class Watching(SmallSimGCD):  # type: ignore[valid-type,misc]
        def after_step(self, batch: Batch) -> None:
            seen.append(batch.progress)

    run(Watching, epochs=2)
    assert seen == pytest.approx([0, 1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6])


def test_the_frozen_part_never_moves_and_the_trained_part_does() -> None:
    data, task, _ = tiny_task()
    context = tiny_context()
    before = {name: value.clone() for name, value in context.backbone.state_dict().items()}
    method = SmallSimGCD(SimGCDConfig(), task, context)
    method.fit(data)
    after = context.backbone.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before if name.startswith("prefix"))
    assert not any(
        torch.equal(before[name], after[name]) for name in before if name.endswith("weight") and "tail" in name
    )


def test_weight_decay_spares_biases_and_vectors() -> None:
    module = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Linear(4, 2))
    (decayed, decay), (exempt, none) = make_optimiser([module], tiny_context().training).groups
    assert (decay, none) == (5e-5, 0.0)
    assert {tuple(p.shape) for p in decayed} == {(4, 3, 1, 1), (2, 4)}
    assert len(exempt) == 4


def test_epochs_begin_and_end_around_their_steps() -> None:
    calls: list[str] = []

    class Noting(SmallSimGCD):  # type: ignore[valid-type, misc]
        def on_epoch_start(self, epoch: int) -> None:
            calls.append(f"start {epoch}")

        def after_step(self, batch: Batch) -> None:
            calls.append(f"step of {batch.epoch}")

        def on_epoch_end(self, epoch: int) -> None:
            calls.append(f"end {epoch}")

    run(Noting, epochs=2)
    steps = (len(calls) - 4) // 2
    assert steps > 0
    assert calls == ["start 0", *["step of 0"] * steps, "end 0", "start 1", *["step of 1"] * steps, "end 1"]


def test_clipping_bounds_the_step() -> None:
    from dataclasses import replace

    data, task, _ = tiny_task()
    context = tiny_context(epochs=1, batch_size=48, lr=1.0)
    context = replace(context, training=replace(context.training, clip_norm=1e-3, weight_decay=0.0))
    method = SmallSimGCD(SimGCDConfig(), task, context)
    before: dict[str, Tensor] = {}

    def remember(epoch: int) -> None:
        before.update({k: v.clone() for k, v in method.prototypes.state_dict().items()})

    method.on_epoch_start = remember  # type: ignore[method-assign]
    method.fit(data)
    moved = (method.prototypes.weight - before["weight"]).norm().item()
    assert 0 < moved <= 1e-3
