"""The k-means methods as methods: what they cluster, what they promise, what they keep."""

from __future__ import annotations

import numpy as np
import pytest

from gcdbench.core.errors import TrainingError
from gcdbench.images.image_set import ImageSet
from gcdbench.methods.configs import KMeansConfig, PixelsKMeansConfig, SSKMeansConfig
from gcdbench.methods.kmeans import KMeans, PixelsKMeans
from gcdbench.methods.ss_kmeans import SSKMeans
from gcdbench.testing.tiny import tiny_context, tiny_task


def test_ss_kmeans_names_old_classes_rightly() -> None:
    data, task, truth = tiny_task(images=80)
    method = SSKMeans(SSKMeansConfig(n_init=5), task, tiny_context())
    method.fit(data)
    made = method.predict(data.unlabelled)
    old = truth[data.unlabelled.ids] < task.k_old
    assert made.anchored
    assert made.k_hat == 4
    assert (made.cluster[old] == truth[data.unlabelled.ids][old]).mean() > 0.9


def test_kmeans_takes_no_notice_of_labels() -> None:
    data, task, _ = tiny_task(images=60)
    made = []
    for labels in (data.labels, 1 - data.labels):
        method = KMeans(KMeansConfig(n_init=2), task, tiny_context())
        method.fit(type(data)(labelled=data.labelled, labels=labels, unlabelled=data.unlabelled))
        made.append(method.predict(data.unlabelled))
    assert np.array_equal(made[0].cluster, made[1].cluster)
    assert not made[0].anchored


def test_pixels_are_cell_means() -> None:
    rng = np.random.default_rng(0)
    store = rng.integers(0, 256, size=(5, 10, 10, 3)).astype(np.uint8)
    _, task, _ = tiny_task()
    method = PixelsKMeans(PixelsKMeansConfig(side=3), task, tiny_context())
    points = method.points(ImageSet(ids=np.array([4, 1]), store=store)).reshape(2, 3, 3, 3)
    edges = [0, 3, 6, 10]
    for n, i in enumerate((4, 1)):
        for r in range(3):
            for c in range(3):
                cell = store[i, edges[r] : edges[r + 1], edges[c] : edges[c + 1]].astype(np.float64) / 255
                assert np.allclose(points[n, r, c], cell.mean(axis=(0, 1)), atol=1e-5)


def test_state_goes_to_another_instance() -> None:
    data, task, _ = tiny_task()
    first, second = (SSKMeans(SSKMeansConfig(n_init=2), task, tiny_context()) for _ in range(2))
    first.fit(data)
    second.load_state_dict(first.state_dict())
    assert np.array_equal(first.predict(data.unlabelled).cluster, second.predict(data.unlabelled).cluster)


def test_predicting_before_fitting_is_refused() -> None:
    data, task, _ = tiny_task()
    with pytest.raises(TrainingError, match="no centres"):
        KMeans(KMeansConfig(), task, tiny_context()).predict(data.unlabelled)
