"""What a gallery chooses to show, and that nothing in it can act."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcdbench.reporting.gallery.content import (
    Discovered,
    Labelled,
    Shown,
    class_means,
    embed_plane,
    first_clusters,
    unit,
    view_clusters,
)
from gcdbench.reporting.gallery.page import Names, build_gallery
from gcdbench.reporting.gallery.sheets import PER_SHEET, make_sheets

KNOWN = 2


def make(count: int = 40, k: int = 4, seed: int = 0, name: str = "pile/{i}.png") -> tuple[Discovered, Labelled]:
    rng = np.random.default_rng(seed)
    means = 3 * rng.normal(size=(k, 8))
    cluster, label = rng.integers(0, k, count), rng.integers(0, KNOWN, 12)
    found = Discovered(
        images=Shown(
            rows=np.arange(count),
            names=tuple(name.format(i=i) for i in range(count)),
            embedding=(means[cluster] + rng.normal(size=(count, 8))).astype(np.float32),
        ),
        cluster=cluster,
        confidence=rng.uniform(size=count).astype(np.float32),
        unlike=rng.random(count) < 0.1,
    )
    labelled = Labelled(
        images=Shown(
            rows=count + np.arange(12),
            names=tuple(f"known/{i}.png" for i in range(12)),
            embedding=(means[label] + rng.normal(size=(12, 8))).astype(np.float32),
        ),
        label=label,
    )
    return found, labelled


def pixels(found: Discovered, labelled: Labelled) -> np.ndarray:
    total = len(found.images) + len(labelled.images)
    return np.random.default_rng(1).integers(0, 256, (total, 16, 16, 3), dtype=np.uint8)


def page(found: Discovered, labelled: Labelled, known: tuple[str, ...] = ("a", "b")) -> str:
    names = Names(known=known, clusters={}, merged={}, rejected=frozenset())
    store = pixels(found, labelled)
    return build_gallery(found, labelled, store, names, k=4, run_id="r", title="T", k_estimated=True)


def data_of(text: str) -> dict:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert match
    return json.loads(html.unescape(match[1]))


@pytest.mark.parametrize("seed", range(5))
def test_a_cluster_is_shown_with_its_own_images(seed: int) -> None:
    """Typical by cosine to the mean, doubtful by confidence, both by a loop of their own."""
    found, labelled = make(seed=seed)
    for view in view_clusters(found, labelled, KNOWN, first_clusters(KNOWN, 4)):
        members = [i for i in range(len(found.images)) if found.cluster[i] == view.number]
        assert view.size == len(members)
        assert view.unlike == sum(found.unlike[i] for i in members)
        if view.known >= 0:
            own = [
                e / np.linalg.norm(e)
                for e, y in zip(labelled.images.embedding, labelled.label, strict=True)
                if y == view.number
            ]
        else:
            own = [found.images.embedding[i] / np.linalg.norm(found.images.embedding[i]) for i in members]
        centre = np.mean(own, axis=0)
        cosine = {i: found.images.embedding[i] @ centre / np.linalg.norm(found.images.embedding[i]) for i in members}
        assert list(view.typical) == sorted(members, key=lambda i: -cosine[i])[: len(view.typical)]
        doubt = cosine if view.known >= 0 else {i: found.confidence[i] for i in members}
        assert list(view.doubtful) == sorted(members, key=lambda i: doubt[i])[: len(view.doubtful)]


def test_pairs_are_the_most_alike_and_each_image_occurs_once() -> None:
    found, labelled = make()
    features, references = unit(found.images.embedding), unit(labelled.images.embedding)
    for view in view_clusters(found, labelled, KNOWN, first_clusters(KNOWN, 4)):
        if view.known >= 0:
            assert view.pairs == ()
            continue
        firsts, seconds = zip(*view.pairs, strict=True)
        assert len(set(firsts)) == len(firsts)
        assert len(set(seconds)) == len(seconds)
        assert all(labelled.label[j] == view.resembles for j in seconds)
        members = np.flatnonzero(found.cluster == view.number)
        others = np.flatnonzero(labelled.label == view.resembles)
        best = max(float(features[i] @ references[j]) for i in members for j in others)
        assert float(features[firsts[0]] @ references[seconds[0]]) == pytest.approx(best)


def test_a_class_without_labelled_images_breaks_nothing() -> None:
    means = class_means(np.ones((2, 3), dtype=np.float32), np.array([0, 0]), 3)
    assert np.allclose(means[0], 1 / np.sqrt(3))
    assert not means[1:].any()


@pytest.mark.parametrize("count", [0, 1, 2, 5, 40])
def test_the_map_lies_in_the_unit_square(count: int) -> None:
    plane = embed_plane(np.random.default_rng(0).normal(size=(count, 6)).astype(np.float32))
    assert plane.shape == (count, 2)
    assert np.isfinite(plane).all()
    assert ((plane >= 0) & (plane <= 1)).all()


def test_sheets_hold_every_thumbnail() -> None:
    store = np.zeros((PER_SHEET + 5, 8, 8, 3), dtype=np.uint8)
    sheets = make_sheets(store, np.arange(len(store)), 4)
    assert len(sheets.pictures) == 2
    assert sheets.count == len(store)


def test_thumbnails_shrink_until_they_fit() -> None:
    store = np.random.default_rng(0).integers(0, 256, (60, 64, 64, 3), dtype=np.uint8)
    plain = make_sheets(store, np.arange(60), 64)
    room = sum(map(len, plain.pictures)) // 2
    fitting = make_sheets(store, np.arange(60), 64, most=room)
    assert sum(map(len, fitting.pictures)) <= room
    assert fitting.side < 64
    assert make_sheets(store, np.arange(60), 64, most=10**9) == plain


def test_a_method_without_confidences_shows_none() -> None:
    found, labelled = make()
    made = page(replace(found, confidence=np.full(len(found.images), np.nan, dtype=np.float32)), labelled)
    data = data_of(made)
    assert set(data["images"]["confidence"]) == {None}
    assert all(image["confidence"] is None for entry in data["clusters"] for image in entry["typical"])


@settings(max_examples=25, deadline=None)
@given(text=st.text(min_size=1, max_size=40))
def test_names_are_text_whatever_they_look_like(text: str) -> None:
    """Markup in file and class names comes back as text and opens no element."""
    hostile = f"</script><script>alert(1)</script><img src=x onerror=alert(2)>{text}"
    found, labelled = make(count=12, name=hostile.replace("{", "(").replace("}", ")") + "{i}")
    made = page(found, labelled, known=(hostile, "b"))
    assert made.count("<script") == 2  # the page's own
    assert "<img" not in made
    assert data_of(made)["known"][0] == hostile


def test_the_page_loads_nothing() -> None:
    found, labelled = make()
    made = page(found, labelled)
    assert not re.search(r"(src|href)=\"(?!data:|#)", made)
    assert "http" not in re.sub(r"http-equiv", "", made)


def test_what_was_decided_before_is_shown_again() -> None:
    found, labelled = make()
    names = Names(known=("a", "b"), clusters={2: "ulcer"}, merged={3: 2}, rejected=frozenset({3}))
    made = build_gallery(found, labelled, pixels(found, labelled), names, k=4, run_id="r", title="T", k_estimated=False)
    clusters = {entry["number"]: entry for entry in data_of(made)["clusters"]}
    assert clusters[2]["name"] == "ulcer"
    assert clusters[3]["merged"] == 2
    assert clusters[3]["rejected"]
