"""The phantom: exact, independent of order and batch, fair in what it hides, and as hard as its card says."""

from __future__ import annotations

import hashlib
import pickle

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from gcdbench.core.errors import DataError
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.datasets.sources import phantom
from gcdbench.datasets.sources.phantom_lesions import PATTERNS, make_lesions
from gcdbench.datasets.sources.phantom_noise import uniform, value_noise

MASK = (1 << 64) - 1


def source(**options: object) -> DatasetSource:
    return phantom.make_phantom(
        DatasetRequest(name="phantom", options={key: str(value) for key, value in options.items()})
    )


def test_uniform_numbers_equal_a_transcription_in_python_integers() -> None:
    def oracle(sample: int, stream: int, position: int) -> float:
        key = 0x9E3779B97F4A7C15 + sample * 0xD1B54A32D192ED03 + stream * 0x8CB92BA72F3D8DD7
        key = (key + (position + 1) * 0xABC98388FB8FAC03) & MASK
        key = ((key ^ (key >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        key = ((key ^ (key >> 27)) * 0x94D049BB133111EB) & MASK
        return ((key ^ (key >> 31)) >> 40) / 2**24

    index = np.array([0, 1, 7, 123_456], dtype=np.int64)
    made = uniform(index, 9, 5)
    assert made.tolist() == [[oracle(int(i), 9, j) for j in range(5)] for i in index]


def test_uniform_numbers_are_spread_evenly() -> None:
    counts = np.histogram(uniform(np.arange(200, dtype=np.int64), 3, 200), bins=10, range=(0, 1))[0]
    assert abs(counts / 4000 - 1).max() < 0.06


def test_noise_passes_through_its_grid_and_stays_between_its_values() -> None:
    index = np.arange(3, dtype=np.int64)
    field = value_noise(index, 4, 5 * 9, 5)
    grid = uniform(index, 4, 36).reshape(3, 6, 6)
    # Each cell is 9 pixels; the first pixel centre of a cell is 0.5 / 9 beyond its corner.
    assert np.abs(field[:, ::9, ::9] - grid[:, :5, :5]).max() < 0.02
    assert field.min() >= grid.min()
    assert field.max() <= grid.max()


def test_an_image_does_not_depend_on_what_was_asked_for_before() -> None:
    forwards = source(n_per_class=8, size=48)
    backwards = source(n_per_class=8, size=48)
    wanted = [forwards.raw(i) for i in range(64)]
    assert [backwards.raw(i) for i in reversed(range(64))][::-1] == wanted
    sent = pickle.loads(pickle.dumps(forwards.raw))
    assert sent(37) == wanted[37]


def test_a_larger_phantom_begins_with_the_smaller_one() -> None:
    small, large = source(n_per_class=4, size=48), source(n_per_class=12, size=48)
    assert [small.raw(i) for i in range(32)] == [large.raw(i) for i in range(32)]


def test_images_are_the_same_everywhere() -> None:
    """The hash was made once; another processor, system or numpy must arrive at the same bytes."""
    made = source(n_per_class=4)
    digest = hashlib.sha256(b"".join(made.raw(i) for i in range(len(made)))).hexdigest()
    assert digest == "54b3bb5632fa58a02fa38c0236bea95c7bfdb7ba84f4b86c67087e7ff0b51e79"


def test_no_two_images_are_alike() -> None:
    made = source(n_per_class=20, size=64)
    assert len({made.raw(i) for i in range(len(made))}) == len(made)


def test_classes_patients_and_parts_fit_together() -> None:
    made = source()
    assert made.groups is not None
    assert made.partition is not None
    assert len(made.card.classes) == len(PATTERNS) == 8
    for label in range(8):
        of_class = made.labels == label
        assert made.card.counts is not None
        assert made.card.test_counts is not None
        assert (of_class & (made.partition == "train")).sum() == made.card.counts[label] == 64
        assert (of_class & (made.partition == "test")).sum() == made.card.test_counts[label] == 16
    for group in np.unique(made.groups):
        members = made.groups == group
        assert members.sum() == 4
        assert len(np.unique(made.labels[members])) == len(np.unique(made.partition[members])) == 1


def test_masks_cover_the_lesion_and_nothing_else_differs_between_look_alikes() -> None:
    """Same sample, old class and its look-alike: pixels differ inside the lesion, where the soft edge begins."""
    index, size = np.arange(6, dtype=np.int64), 96
    for old in range(4):
        labels = np.full(6, old, dtype=np.int64)
        first, lesion = phantom.render(index, labels, index, size)
        second, other = phantom.render(index, labels + 4, index, size)
        assert np.array_equal(lesion.cover, other.cover)
        differs = (first.astype(int) - second.astype(int)).any(axis=3)
        assert not differs[lesion.cover == 0].any()
        assert differs[lesion.mask].mean() > 0.5


def test_every_image_has_a_lesion_of_some_size() -> None:
    made = source(n_per_class=8, size=64)
    assert made.mask is not None
    shares = [np.asarray(made.mask(i)).mean() for i in range(len(made))]
    assert min(shares) > 0.04
    assert max(shares) < 0.4


def test_a_pattern_changes_no_lesion_s_average_colour_or_contrast() -> None:
    index, size = np.arange(40, dtype=np.int64), 96
    x, y = phantom._coordinates(size)
    for label in range(8):
        lesion = make_lesions(index, np.full(40, label, dtype=np.int64), x, y)
        inside = lesion.pattern[lesion.mask]
        assert abs(float(inside.mean())) < 0.02
        assert 0.07 < float(inside.std()) < 0.13


def test_kmeans_on_pixels_is_near_chance() -> None:
    from sklearn.cluster import KMeans

    made = source(n_per_class=40, size=64)
    assert made.decode is not None
    images = np.stack([made.decode(made.raw(i)) for i in range(len(made))]).astype(np.float32)
    small = images.reshape(len(images), 16, 4, 16, 4, 3).mean(axis=(2, 4)).reshape(len(images), -1)
    cluster = KMeans(8, n_init=4, random_state=0).fit_predict(small)
    table = np.zeros((8, 8))
    np.add.at(table, (cluster, made.labels), 1)
    accuracy = table[linear_sum_assignment(table, maximize=True)].sum() / len(images)
    # Random clusters of this size score about 0.19 after the best matching.
    assert accuracy < 0.26


@pytest.mark.parametrize("options", [{"n_per_class": "many"}, {"size": 8}, {"colour": "red"}, {"n_per_class": -3}])
def test_bad_options_are_refused_in_a_sentence(options: dict[str, object]) -> None:
    with pytest.raises(DataError, match="phantom"):
        source(**options)
