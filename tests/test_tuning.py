"""The learning-rate check: what is held out, what decides, and that hidden labels cannot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gcdbench.core.arrays import IntArray
from gcdbench.core.errors import ConfigError, TrainingError
from gcdbench.images.image_set import ImageSet
from gcdbench.runs.tuning import Trial, best_rate, hold_out, recovered_share, try_rates
from gcdbench.splits.data import GCDData
from gcdbench.splits.manifest import LABELLED, SplitManifest, make_split
from gcdbench.splits.protocol import Protocol
from gcdbench.training.method import Prediction


def split(groups: bool = True, images: int = 120) -> SplitManifest:
    labels = np.arange(images) % 4
    names = np.char.add("p", ((np.arange(images) // 16) * 4 + labels).astype(str)) if groups else None
    return make_split(
        dataset="made-up",
        class_names=("a", "b", "c", "d"),
        labels=labels,
        sha256=[f"{i:064x}" for i in range(images)],
        protocol=Protocol(name="half"),
        groups=names,
    )


STORE = np.zeros((120, 2, 2, 3), dtype=np.uint8)


@pytest.mark.parametrize("groups", [True, False])
def test_held_out_images_lose_their_labels_and_stay_in_the_data(groups: bool) -> None:
    made = split(groups)
    held = hold_out(made, STORE, 0.25, np.random.default_rng(0))
    before = made.data(STORE)
    assert set(held.data.labelled.ids) | set(held.images.ids) == set(before.labelled.ids)
    assert not set(held.data.labelled.ids) & set(held.images.ids)
    assert set(held.data.unlabelled.ids) == set(before.unlabelled.ids) | set(held.images.ids)
    assert np.array_equal(made.labels[held.images.ids], held.labels)
    assert np.array_equal(made.labels[held.data.labelled.ids], held.data.labels)
    assert set(held.labels) == set(held.data.labels) == {0, 1}
    share = len(held.images) / len(before.labelled)
    assert 0.2 <= share <= 0.5


def test_no_group_has_images_on_both_sides() -> None:
    made = split()
    held = hold_out(made, STORE, 0.25, np.random.default_rng(0))
    assert not set(made.groups[held.images.ids]) & set(made.groups[held.data.labelled.ids])


def test_single_images_are_given_up_where_every_class_has_one_group() -> None:
    made = split()
    alone = replace(made, groups=made.labels)
    held = hold_out(alone, STORE, 0.25, np.random.default_rng(0))
    assert held.divided
    assert not hold_out(made, STORE, 0.25, np.random.default_rng(0)).divided
    assert set(held.labels) == set(held.data.labels) == {0, 1}
    assert not set(held.data.labelled.ids) & set(held.images.ids)


@pytest.mark.parametrize("seed", range(20))
def test_no_class_loses_its_last_label_with_a_group_of_several_classes(seed: int) -> None:
    """Two groups that hold both old classes: giving up one for each class would leave neither a label."""
    made = split()
    shared = replace(made, groups=np.arange(len(made.labels)) // 8 % 2)
    held = hold_out(shared, STORE, 0.25, np.random.default_rng(seed))
    assert set(held.labels) == set(held.data.labels) == {0, 1}


def test_nothing_to_spare_is_said() -> None:
    made = split(groups=False, images=8)
    assert len(made.ids(LABELLED)) == 2
    with pytest.raises(ConfigError, match="No labelled image can be spared"):
        hold_out(made, STORE, 0.2, np.random.default_rng(0))


def prediction(cluster: list[int], anchored: bool) -> Prediction:
    found: IntArray = np.array(cluster)
    return Prediction(ids=np.arange(len(cluster)), cluster=found, k_hat=4, anchored=anchored)


def test_named_clusters_must_be_right_by_name_and_others_by_matching() -> None:
    labels = np.array([0, 0, 1, 1])
    assert recovered_share(prediction([1, 1, 0, 0], anchored=True), labels, 2) == 0.0
    assert recovered_share(prediction([1, 1, 0, 0], anchored=False), labels, 2) == 1.0


class Fake:
    """Recovers more the nearer the rate is to 0.03, and diverges above 0.5."""

    def __init__(self, rate: float) -> None:
        if rate > 0.5:
            raise TrainingError("the loss is not finite.")
        self.right = max(0, 10 - int(abs(np.log10(rate / 0.03)) * 8))

    def predict(self, images: ImageSet) -> Prediction:
        cluster = np.zeros(len(images), dtype=np.int64)
        cluster[self.right :] = 3
        return Prediction(ids=images.ids, cluster=cluster, k_hat=4, anchored=True)


def test_the_rate_that_recovers_most_wins_and_a_diverging_one_is_no_candidate() -> None:
    images = ImageSet(ids=np.arange(10), store=STORE)
    held: Any = type("Held", (), {"images": images, "labels": np.zeros(10, dtype=np.int64)})
    trials = try_rates([1.0, 0.1, 0.03, 0.003], Fake, held, 2)  # type: ignore[arg-type]
    assert [trial.lr for trial in trials] == [0.003, 0.03, 0.1, 1.0]
    assert trials[1].accuracy == 1.0
    assert trials[3] == Trial(lr=1.0, accuracy=None, note="the loss is not finite.")
    assert best_rate(trials) == 0.03


def test_among_equals_the_smallest_and_without_any_an_error() -> None:
    assert best_rate([Trial(lr=0.01, accuracy=0.5), Trial(lr=0.1, accuracy=0.5)]) == 0.01
    with pytest.raises(TrainingError, match="every rate"):
        best_rate([Trial(lr=0.1, accuracy=None)])


def test_the_data_of_a_trial_names_no_hidden_label() -> None:
    held = hold_out(split(), STORE, 0.25, np.random.default_rng(0))
    assert set(vars(held.data)) == {"labelled", "labels", "unlabelled"}
    assert isinstance(held.data, GCDData)
    assert len(held.data.labels) == len(held.data.labelled)


def test_hidden_labels_change_nothing() -> None:
    made = split()
    labels = made.labels.copy()
    hidden = np.setdiff1d(np.arange(len(labels)), made.ids(LABELLED))
    labels[hidden] = np.random.default_rng(3).permutation(labels[hidden])
    first, second = (hold_out(s, STORE, 0.25, np.random.default_rng(0)) for s in (made, replace(made, labels=labels)))
    assert np.array_equal(first.images.ids, second.images.ids)
    assert np.array_equal(first.labels, second.labels)
    assert np.array_equal(first.data.labelled.ids, second.data.labelled.ids)
    assert np.array_equal(first.data.unlabelled.ids, second.data.unlabelled.ids)
