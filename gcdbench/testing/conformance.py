"""What every method must keep to, as checks that run in seconds: for our methods and for plugin authors'.

In a test file of your own::

    import pytest
    from gcdbench.testing import conformance

    @pytest.mark.parametrize("check", conformance.CHECKS)
    def test_my_method_conforms(check, tmp_path):
        conformance.run_check(check, MyMethod, MyConfig(), folder=tmp_path)

A check that fails raises :class:`ConformanceError` with a sentence that says what was not kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gcdbench.core.arrays import IntArray
from gcdbench.images.image_set import ImageSet
from gcdbench.models.backbone import Backbone
from gcdbench.splits.data import GCDData
from gcdbench.testing.tiny import TinyBackbone, shrink, tiny_context, tiny_task
from gcdbench.training.context import RunContext
from gcdbench.training.method import Method, Prediction, TaskInfo
from gcdbench.training.parametric import ParametricMethod


class ConformanceError(AssertionError):
    """A method does not keep to what the harness promises its users."""


class _KilledError(BaseException):
    """Stands for the end of the process: nothing may catch it."""


def require(kept: bool, sentence: str) -> None:
    """Raise unless ``kept``."""
    if not kept:
        raise ConformanceError(sentence)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The method under test and a folder for its checkpoints."""

    factory: Callable[[Any, TaskInfo, RunContext], Method]
    config: Any
    folder: Path

    def fit(self, data: GCDData, task: TaskInfo, **options: Any) -> Method:
        """A new instance, fitted; ``options`` go to the context."""
        method = self.factory(self.config, task, tiny_context(**options))
        method.fit(data)
        return method

    def restored(self, method: Method, task: TaskInfo, **options: Any) -> Method:
        """Another instance, in another context, with the state of a fitted one."""
        other = self.factory(self.config, task, tiny_context(**options))
        other.load_state_dict(method.state_dict())
        return other

    def answer(self, data: GCDData, task: TaskInfo, **options: Any) -> Prediction:
        """Predictions of a new instance for the unlabelled images."""
        return checked(self.fit(data, task, **options), data.unlabelled)


def checked(method: Method, images: ImageSet) -> Prediction:
    """Predict, and see that the answer is complete and in range."""
    made = method.predict(images)
    require(np.array_equal(made.ids, images.ids), "predict must answer for the ids it was asked about, in their order")
    require(made.cluster.shape == images.ids.shape, "predict must give one cluster per image")
    require(np.issubdtype(made.cluster.dtype, np.integer), "clusters must be whole numbers")
    if len(made.cluster):
        require(made.cluster.min() >= 0 and made.cluster.max() < made.k_hat, "clusters must be in 0 .. k_hat - 1")
    for name in ("confidence", "embedding"):
        rows = getattr(made, name)
        require(rows is None or len(rows) == len(images), f"{name} must have one row per image")
        require(rows is None or bool(np.isfinite(rows).all()), f"{name} must be finite")
    return made


def same(first: Prediction, second: Prediction) -> bool:
    """Whether two predictions agree to the last bit."""
    if not np.array_equal(first.cluster, second.cluster):
        return False
    if first.embedding is None or second.embedding is None:
        return first.embedding is second.embedding
    return first.embedding.tobytes() == second.embedding.tobytes()


def check_interface(subject: Subject) -> None:
    """Training and unseen images get clusters; the state goes to another instance."""
    data, task, _ = tiny_task()
    unseen, _, _ = tiny_task(images=10, seed=5)
    method = subject.fit(data, task)
    made = checked(method, data.unlabelled)
    require(made.k_hat == task.k, "with K known, k_hat must be K")
    checked(method, unseen.unlabelled)
    other = checked(subject.restored(method, task), data.unlabelled)
    require(same(made, other), "load_state_dict(state_dict()) must restore every prediction")


def check_test_view(subject: Subject) -> None:
    """Predictions are of the one test view of an image: what random views look like is a matter of training only."""
    data, task, _ = tiny_task()
    for views, others in (("online", "online"), ("bank:2", "bank:3")):
        method = subject.fit(data, task, views=views)
        made = checked(method, data.unlabelled)
        unlike = {"views": others, "augmentation": "geometric"}
        again = checked(subject.restored(method, task, **unlike), data.unlabelled)
        require(
            same(made, again),
            "predict must use the test view: a trained state predicts differently when the random views are different",
        )
        # What a method draws at random when it predicts may depend on the seed; what it sees of an image may not.
        reseeded = checked(subject.restored(method, task, seed=1, **unlike), data.unlabelled)
        if made.embedding is not None and reseeded.embedding is not None:
            require(
                made.embedding.tobytes() == reseeded.embedding.tobytes(),
                "predict must use the test view: the embedding of a trained state depends on the seed",
            )


def check_no_leakage(subject: Subject) -> None:
    """The canary: hidden labels are shuffled, images and given labels are not; nothing may change."""
    data, task, truth = tiny_task()
    first = subject.answer(data, task)
    truth[data.unlabelled.ids] = np.random.default_rng(1).permutation(truth[data.unlabelled.ids])
    require(same(first, subject.answer(data, task)), "predictions must not depend on hidden labels")


def check_determinism(subject: Subject) -> None:
    """One seed, one result, whatever the global random streams hold; and they are left as they were."""
    data, task, _ = tiny_task()
    first = subject.answer(data, task, seed=3)
    torch.rand(5)
    np.random.rand(5)  # noqa: NPY002
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # type: ignore[index]  # noqa: NPY002
    second = subject.answer(data, task, seed=3)
    require(same(first, second), "the same seed must give the same predictions to the last bit")
    unchanged = torch.equal(before[0], torch.get_rng_state())
    unchanged &= np.array_equal(before[1], np.random.get_state()[1])  # type: ignore[index]  # noqa: NPY002
    require(unchanged, "a method must leave the global random streams as they were")


def check_resume(subject: Subject) -> None:
    """Killed in the middle of an epoch and run again, a method ends where it would have ended."""
    data, task, _ = tiny_task()
    whole = subject.answer(data, task, epochs=3)
    for step in (2, 5):
        kept: dict[str, Any] = {"epochs": 3, "checkpoint_dir": subject.folder / str(step), "checkpoint_seconds": 0.0}
        kept["checkpoint_dir"].mkdir(parents=True)
        killed = subject.factory(subject.config, task, _killing(tiny_context(**kept), step))
        with contextlib.suppress(_KilledError):
            killed.fit(data)
        require(same(whole, subject.answer(data, task, **kept)), "a resumed run must end with the same bits")


def _killing(ctx: RunContext, step: int) -> RunContext:
    """The same context, whose backbone ends the process when it is trained for the ``step``-th time."""
    seen = 0

    def load() -> Backbone:
        def count(module: torch.nn.Module, inputs: Any, output: Any) -> None:
            nonlocal seen
            seen += module.training
            if module.training and seen == step:
                raise _KilledError

        backbone = TinyBackbone()
        backbone.tail.register_forward_hook(count)
        return backbone

    return RunContext(**{**{name: getattr(ctx, name) for name in ctx.__dataclass_fields__}, "load_backbone": load})


def check_unequal_k(subject: Subject) -> None:
    """More clusters than classes, no new class, a single old class, and K unknown."""
    for classes, k_old, k in ((4, 2, 6), (3, 3, 3), (4, 1, 4)):
        data, task, _ = tiny_task(classes=classes, k_old=k_old)
        made = subject.answer(data, TaskInfo(k_old=k_old, k=k))
        require(made.k_hat == k, f"with K = {k} known and {k_old} old classes, k_hat must be {k}")
    data, task, _ = tiny_task(k_known=False)
    made = subject.answer(data, task)
    require(made.k_hat >= task.k_old, "an estimated K must not be smaller than the number of old classes")


def check_tiny(subject: Subject) -> None:
    """One label per class, one unlabelled image, fewer images than clusters: no crash, no NaN."""
    for images in (5, 7, 12):
        data, task, _ = tiny_task(images=images)
        subject.answer(data, task, batch_size=64)
    data, task, _ = tiny_task(images=8)
    single = ImageSet(ids=data.unlabelled.ids[:1], store=data.unlabelled.store)
    subject.answer(GCDData(labelled=data.labelled, labels=data.labels, unlabelled=single), task)


def check_class_permutation(subject: Subject) -> None:
    """Old classes may be named in any order: anchored clusters follow the names, free ones do not."""
    data, task, _ = tiny_task()
    renamed = GCDData(labelled=data.labelled, labels=1 - data.labels, unlabelled=data.unlabelled)
    answers = []
    follows = ignores = 0
    for seed in range(3):  # a training this short may fail to learn from one of them
        for given in (data, renamed):
            method = subject.fit(given, task, epochs=12, seed=seed)
            made = checked(method, given.labelled)
            answers.append(checked(method, given.unlabelled))
            follows += _agreement(made.cluster, given.labels)
            ignores += _agreement(made.cluster, 1 - given.labels)
    if answers[0].anchored:
        require(follows > ignores, "the first clusters must follow the names that were given to the old classes")
    else:
        require(
            _same_partition(answers[0].cluster, answers[1].cluster),
            "clusters that are tied to no class must not depend on the names of the classes",
        )


def _agreement(cluster: IntArray, labels: IntArray) -> int:
    return int((cluster == labels).sum())


def _same_partition(first: IntArray, second: IntArray) -> bool:
    pairs = len(np.unique(np.stack([first, second]), axis=1).T)
    return pairs == len(np.unique(first)) == len(np.unique(second))


_CHECKS: dict[str, Callable[[Subject], None]] = {
    "interface": check_interface,
    "test-view": check_test_view,
    "no-leakage": check_no_leakage,
    "determinism": check_determinism,
    "resume": check_resume,
    "unequal-k": check_unequal_k,
    "tiny": check_tiny,
    "class-permutation": check_class_permutation,
}
CHECKS: tuple[str, ...] = tuple(_CHECKS)
"""Names of all checks."""


def run_check(check: str, method: type[Any], config: Any, *, folder: Path) -> None:
    """Put a method through one check; ``folder`` is an empty place for checkpoints."""
    factory = shrink(method) if issubclass(method, ParametricMethod) else method
    # Tensors this small gain nothing from threads, which on a busy machine wait for each other most of the time.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        _CHECKS[check](Subject(factory=factory, config=config, folder=folder))
    finally:
        torch.set_num_threads(before)
