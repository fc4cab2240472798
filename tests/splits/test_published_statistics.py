"""Cards and protocols against what is published of the sets, on label lists of the full size."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from gcdbench.datasets.card import load_card
from gcdbench.datasets.protocols import card_of, named_protocol
from gcdbench.plugins.manager import get_manager
from gcdbench.splits.manifest import make_split
from tests.splits.published_lists import published, published_old


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """What is published of a set: images of both parts, classes, and the sizes of the literature's split of them.

    classes: old and new. labelled, unlabelled: images; rounding: how far they may be off, since some are published in
    hundreds only, the literature draws its half over all old classes at once, and classes differ in size.
    """

    protocol: str
    train: int
    test: int
    classes: tuple[int, int]
    labelled: int
    unlabelled: int
    rounding: int = 0


STATISTICS = {
    "cifar10": Statistics(
        protocol="gcd", train=50_000, test=10_000, classes=(5, 5), labelled=12_500, unlabelled=37_500
    ),
    "cifar100": Statistics(
        protocol="gcd", train=50_000, test=10_000, classes=(80, 20), labelled=20_000, unlabelled=30_000
    ),
    "imagenet-100": Statistics(
        protocol="gcd", train=127_200, test=5_000, classes=(50, 50), labelled=31_900, unlabelled=95_300, rounding=200
    ),
    "cub-200-2011": Statistics(
        protocol="ssb", train=5_994, test=5_794, classes=(100, 100), labelled=1_500, unlabelled=4_500, rounding=50
    ),
    "stanford-cars": Statistics(
        protocol="ssb", train=8_144, test=8_041, classes=(98, 98), labelled=2_000, unlabelled=6_100, rounding=100
    ),
    "fgvc-aircraft": Statistics(
        protocol="ssb", train=6_667, test=3_333, classes=(50, 50), labelled=1_700, unlabelled=5_000, rounding=50
    ),
    "herbarium-19": Statistics(
        protocol="ssb", train=34_225, test=2_679, classes=(341, 342), labelled=8_900, unlabelled=25_400, rounding=400
    ),
}
"""From the papers of the sets, of GCD (CVPR 2022) and of SimGCD (ICCV 2023); nothing here is read from a card."""


@pytest.mark.parametrize("dataset", STATISTICS)
def test_cards_state_the_published_sizes(dataset: str) -> None:
    card, known = load_card(dataset), STATISTICS[dataset]
    assert len(card.classes) == sum(known.classes)
    if dataset == "imagenet-100":  # published in thousands; its card has what is known of single classes
        assert card.test_counts is not None
        assert sum(card.test_counts) == known.test
    else:
        assert card.samples == {"train": known.train, "test": known.test}
    if known.protocol == "ssb":
        split = card.published_splits["ssb"]
        assert (split.old_count, split.label_fraction) == (known.classes[0], 0.5)
        listed = ",".join(str(position) for position in sorted(published_old(dataset)))
        assert split.old_sha256 == hashlib.sha256(listed.encode("ascii")).hexdigest()
    else:
        assert card.protocols["gcd"].old_classes == known.classes[0]


@pytest.mark.parametrize("dataset", STATISTICS)
def test_sizes_are_the_published_ones(dataset: str, tmp_path: Path, cli, no_data: Path) -> None:
    """Label lists of the full size, as evenly over the classes as it goes, under the literature's protocol."""
    card, known = load_card(dataset), STATISTICS[dataset]
    if known.protocol == "ssb":
        (tmp_path / "split.json").write_text(json.dumps(published(dataset)))
        cli("data", "split", "import", "--format", "ssb", tmp_path / "split.json", dataset)
    classes = sum(known.classes)
    labels = np.concatenate([np.sort(np.arange(count) % classes) for count in (known.train, known.test)])
    split = make_split(
        dataset=dataset,
        class_names=card.classes,
        labels=labels,
        sha256=[f"{number:064x}" for number in range(len(labels))],
        protocol=named_protocol(known.protocol, card_of(dataset, get_manager()), dataset),
        partition=np.repeat(["train", "test"], [known.train, known.test]),
    )
    old, new = known.classes
    assert (split.k_old, len(split.classes) - split.k_old) == (old, new)
    assert [len(split.ids("labelled")), len(split.ids("unlabelled")), len(split.ids("test"))] == [
        pytest.approx(known.labelled, abs=known.rounding),
        pytest.approx(known.unlabelled, abs=known.rounding),
        known.test,
    ]
    assert len(split.ids("labelled")) + len(split.ids("unlabelled")) == known.train
    names = [
        card.classes[position]
        for position in (sorted(published_old(dataset)) if known.protocol == "ssb" else range(old))
    ]
    assert list(split.classes[:old]) == names
    assert set(split.labels[split.ids("labelled")].tolist()) == set(range(old))
    assert set(split.labels[split.ids("unlabelled")].tolist()) == set(range(old + new))


def test_the_first_classes_of_the_cards_are_the_old_ones_of_the_literature() -> None:
    """The order that published positions count in: of the labels in CIFAR's files, and of sorted names elsewhere."""
    assert load_card("cifar10").classes[:5] == ("airplane", "automobile", "bird", "cat", "deer")
    assert load_card("cifar100").classes == tuple(sorted(load_card("cifar100").classes))
    assert load_card("herbarium-19").classes == tuple(sorted(map(str, range(683))))
    assert load_card("fgvc-aircraft").classes == tuple(sorted(load_card("fgvc-aircraft").classes))
    numbers = [int(name.partition(".")[0]) for name in load_card("cub-200-2011").classes]
    assert numbers == list(range(1, 201))


@pytest.mark.parametrize(
    ("dataset", "pairs"),
    [
        ("stanford-cars", {(22, 23): "Audi S4 Sedan", (125, 126): "Honda Odyssey", (189, 190): "Volkswagen Golf"}),
        ("fgvc-aircraft", {(14, 15): "757-", (19, 20): "777-", (76, 78): "Fokker "}),
        ("cub-200-2011", {(28, 29): "_Crow", (26, 25): "_Cowbird", (70, 71): "_Jaeger"}),
    ],
)
def test_published_positions_are_those_of_the_cards(dataset: str, pairs: dict[tuple[int, int], str]) -> None:
    """The benchmark's files give hard new classes an old one that is nearly the same: only in the right order."""
    classes = load_card(dataset).classes
    for (known, unknown), alike in pairs.items():
        assert alike in classes[known]
        assert alike in classes[unknown]


def test_imagenet_100_is_the_draw_that_its_card_describes() -> None:
    """Seed 0 of numpy's legacy generator, 100 of 1,000 positions, against the list of synsets that timm ships."""
    timm = importlib.util.find_spec("timm")
    if timm is None or not timm.submodule_search_locations:
        pytest.skip("timm is not installed")
    file = Path(timm.submodule_search_locations[0]) / "data" / "_info" / "imagenet_synsets.txt"
    synsets = sorted(file.read_text().split())
    drawn = np.random.RandomState(0).choice(range(1000), size=(100,), replace=False)
    assert load_card("imagenet-100").classes == tuple(synsets[position] for position in np.sort(drawn))
