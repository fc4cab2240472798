"""Choosing a learning rate without looking at what is scored: by accuracy on labelled images of old classes.

A share of the labelled images gives up its labels and joins the unlabelled ones. Each rate trains on what is left;
the rate that recovers most of the given-up labels is chosen. New classes and hidden labels play no part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.core.errors import ConfigError, TrainingError
from gcdbench.images.image_set import ImageSet
from gcdbench.methods.algorithms.estimate_k import matched_share
from gcdbench.runs.events import Note
from gcdbench.runs.execution import Execution, make_context, prepare_data, task_info
from gcdbench.splits.data import GCDData
from gcdbench.splits.manifest import LABELLED, SplitManifest
from gcdbench.training.method import Method, Prediction


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """A smaller task: its data, and the images whose labels were given up, with these labels.

    divided: whether images of one group are on both sides, because no class has two groups.
    """

    data: GCDData
    images: ImageSet
    labels: IntArray
    divided: bool = False


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One rate: the share of held-out images recovered, or None and the reason why training ended early."""

    lr: float
    accuracy: float | None
    note: str = ""


def hold_out(split: SplitManifest, store: Pixels, share: float, rng: np.random.Generator) -> HeldOut:
    """Give up the labels of about ``share`` of each old class's labelled images, whole groups at a time.

    Every class keeps at least one group with labels; a class with a single group gives up none. Where that is so in
    every class, single images are given up.
    """
    ids = split.ids(LABELLED)
    labels = split.labels[ids]
    given_up = _choose(labels, split.groups[ids], split.k_old, share, rng)
    divided = not given_up.any()
    if divided:
        given_up = _choose(labels, np.arange(len(ids)), split.k_old, share, rng)
    if not given_up.any():
        raise ConfigError(
            "No labelled image can be spared for validation: every old class has a single labelled image.",
            hint="use a split with more labels",
        )
    data = split.data(store)
    unlabelled = np.sort(np.concatenate([data.unlabelled.ids, ids[given_up]]))
    return HeldOut(
        data=GCDData(
            labelled=ImageSet(ids=ids[~given_up], store=store),
            labels=labels[~given_up],
            unlabelled=ImageSet(ids=unlabelled, store=store),
        ),
        images=ImageSet(ids=ids[given_up], store=store),
        labels=labels[given_up],
        divided=divided,
    )


def _choose(
    labels: IntArray, groups: IntArray, k_old: int, share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """(n,) which labelled images give up their label: about ``share`` of each class, not the last group of any."""
    given_up = np.zeros(len(labels), dtype=np.bool_)
    for label in range(k_old):
        own = labels == label
        for group in rng.permutation(np.unique(groups[own])):
            if given_up[own].sum() >= share * own.sum():
                break
            more = given_up | (groups == group)
            # A group may hold several classes: none of them may lose its last label with it.
            if np.isin(labels, labels[~more]).all():
                given_up = more
    return given_up


def recovered_share(made: Prediction, labels: IntArray, k_old: int) -> float:
    """Share of old-class images put right: by name where clusters have names, else under the best matching."""
    if made.anchored:
        return float(np.mean(made.cluster == labels))
    return matched_share(labels, made.cluster, k_old)


def try_rates(
    rates: Sequence[float], train: Callable[[float], Method], held_out: HeldOut, k_old: int
) -> tuple[Trial, ...]:
    """Train once per rate and see how many of the given-up labels come back; one that diverges is not a candidate."""
    trials = []
    for rate in sorted(set(rates)):
        try:
            made = train(rate).predict(held_out.images)
            trials.append(Trial(lr=rate, accuracy=recovered_share(made, held_out.labels, k_old)))
        except TrainingError as error:
            trials.append(Trial(lr=rate, accuracy=None, note=error.message))
    return tuple(trials)


def best_rate(trials: Sequence[Trial]) -> float:
    """The rate with the highest accuracy; among equals the smallest."""
    usable = [trial for trial in trials if trial.accuracy is not None]
    if not usable:
        raise TrainingError("Training failed at every rate that was tried.", hint="try smaller rates")
    return max(usable, key=lambda trial: (trial.accuracy, -trial.lr)).lr


def tune_rate(execution: Execution, rates: Sequence[float], *, share: float = 0.2) -> tuple[Trial, ...]:
    """Try rates for a planned run on its dataset's labelled images; nothing is stored."""
    plan, prepared = execution.plan, prepare_data(execution)
    split = prepared.split
    first = make_context(execution, prepared)
    held_out = hold_out(split, prepared.store.pixels, share, first.rng("validation"))
    if held_out.divided:
        execution.listener(Note(message="Each old class has one group: its images are on both sides."))

    def train(rate: float) -> Method:
        planned = replace(execution, plan=replace(plan, training=replace(plan.training, lr=rate)))
        # A context of its own, and with it a backbone of its own: rates must not train on top of each other.
        ctx = make_context(planned, prepared)
        method: Method = plan.method.load()(plan.config, task_info(plan, split), ctx)
        method.fit(held_out.data)
        return method

    return try_rates(rates, train, held_out, split.k_old)
