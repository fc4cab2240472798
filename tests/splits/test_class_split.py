"""Published splits of classes: both forms, both formats, every contradiction, and pickles that would like to run."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import pickle
import random
import shutil
import tracemalloc
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from gcdbench.core.errors import DataError
from gcdbench.datasets.card import load_card
from gcdbench.datasets.protocols import card_of, named_protocol
from gcdbench.plugins.manager import get_manager
from gcdbench.splits.class_split import read_class_split
from gcdbench.splits.manifest import make_split

CLASSES = ("a", "b", "c", "d", "e")
SSB = {"known_classes": [3, 0], "unknown_classes": {"Easy": [1], "Medium": [], "Hard": [4, 2]}}


def read(content: object, classes: tuple[str, ...] = CLASSES):
    return read_class_split(Path("split"), content if isinstance(content, bytes) else pickle.dumps(content), classes)


def said(content: object) -> str:
    with pytest.raises(DataError) as caught:
        read(content)
    return caught.value.message


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(SSB).encode(),
        b"\n  " + json.dumps({**SSB, "known_unknown_pairs": {"Hard": [{"known_class": 3}]}}).encode(),
        *(pickle.dumps(SSB, protocol=protocol) for protocol in range(6)),
        pickle.dumps({"Old": [0, 3], "New": (4, 2, 1)}),
        pickle.dumps({"Old": ["a", "d"], "New": ["b", "c", "e"]}),
    ],
)
def test_one_split_in_many_forms(content: bytes) -> None:
    split = read(content)
    assert split.old == ("a", "d")
    assert split.new == ("b", "c", "e")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            {"known_classes": [0], "unknown_classes": [1, 2, 3]},
            "lists 1 of the 5 classes neither as old nor as new, first 'e'",
        ),
        ({"known_classes": [0, 1], "unknown_classes": [1, 2, 3, 4]}, "'b' both as old and as new"),
        ({"known_classes": [0, 0], "unknown_classes": [1, 2, 3, 4]}, "names a class twice"),
        ({"known_classes": [0, 5], "unknown_classes": [1, 2, 3, 4]}, "has '5', which is not a class"),
        ({"known_classes": [-1], "unknown_classes": [0, 1, 2, 3, 4]}, "has '-1'"),
        ({"known_classes": [True], "unknown_classes": [0, 2, 3, 4]}, "has 'True'"),
        ({"known_classes": [0.0], "unknown_classes": [1, 2, 3, 4]}, "has '0.0'"),
        ({"known_classes": ["x"], "unknown_classes": [1, 2, 3, 4]}, "has 'x'"),
        ({"known_classes": [10**5000], "unknown_classes": [1, 2, 3, 4]}, "has something else (int)"),
        ({"known_classes": [[0]], "unknown_classes": [1, 2, 3, 4]}, "has something else (list)"),
        ({"known_classes": "abc", "unknown_classes": [1, 2]}, "must be a list"),
        ({"known_classes": [], "unknown_classes": [0, 1, 2, 3, 4]}, "0 old and 5 new"),
        ({"known": [0]}, "not a split of classes"),
        ([1, 2], "not a split of classes"),
        (b" [1, 2]", "not a split of classes"),
        (b"[1, 2", "not JSON"),
        (b"{", "not JSON"),
        (b"", "neither JSON nor a readable pickle"),
        (b"\x80\x04", "neither JSON nor a readable pickle"),
        (b"hello", "neither JSON nor a readable pickle"),
        (b"{" + b'"a":[' * 100_000, "not JSON"),
    ],
)
def test_what_is_no_split_of_these_classes(content: object, reason: str) -> None:
    assert reason in said(content)


# ---- hostile pickles


class Touch:
    """Runs a command when it is unpickled by pickle.load."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self):
        return os.system, (f"touch {self.canary}",)


class Evaluate(Touch):
    def __reduce__(self):
        return eval, (f"open({str(self.canary)!r}, 'w')",)


class Persistent(pickle.Pickler):
    def persistent_id(self, value: object) -> object:
        return "elsewhere" if isinstance(value, Touch) else None


def shared_lists(depth: int) -> list[object]:
    """A list that is small as a pickle, and ten to the power of ``depth`` entries when it is written out."""
    shared: list[object] = [0] * 10
    for _ in range(depth):
        shared = [shared] * 10
    return shared


def hostile(canary: Path) -> dict[str, bytes]:
    """Pickles that would leave a file behind, or eat memory, if they were loaded as pickles usually are."""
    import io

    buffer = io.BytesIO()
    Persistent(buffer).dump({"known_classes": Touch(canary)})
    cases = {
        f"{kind.__name__}, protocol {protocol}, {place}": pickle.dumps(table, protocol=protocol)
        for kind in (Touch, Evaluate)
        for protocol in range(6)
        for place, table in (
            ("instead of the table", kind(canary)),
            ("beside the lists", {**SSB, "more": kind(canary)}),
            ("as a class", {"known_classes": [kind(canary)], "unknown_classes": [1, 2, 3, 4]}),
        )
    }
    return cases | {
        "old opcode INST": f"(S'touch {canary}'\nios\nsystem\n.".encode(),
        "GLOBAL and REDUCE": f"cos\nsystem\n(S'touch {canary}'\ntR.".encode(),
        "GLOBAL, OBJ": f"(cos\nsystem\nS'touch {canary}'\no.".encode(),
        "registered extension": b"\x80\x02\x82\x01.",
        "BUILD on a table": b"\x80\x02}}U\x01aU\x01bsb.",
        "persistent": buffer.getvalue(),
        "text of 2**40 bytes": b"\x80\x04\x8d" + (2**40).to_bytes(8, "little") + b"x.",
        "number of 2**30 digits": b"\x80\x02\x8b" + (2**30).to_bytes(4, "little") + b"\x01.",
        "memo at 2**28": b"\x80\x02Nr" + (2**28).to_bytes(4, "little") + b".",
        "memo at 300000000, as text": b"Np300000000\n.",
        "a key so deep that hashing it ends the process": b"\x80\x02}N" + b"\x85" * 500_000 + b"Ns.",
        "endless entry": pickle.dumps({"known_classes": [shared_lists(30)], "unknown_classes": [1]}),
        "one list under many keys": pickle.dumps(
            {"known_classes": [0], "unknown_classes": dict.fromkeys(range(500), [1, 2] * 4_000)}
        ),
        "memo at 2**31": b"\x80\x02Nr" + (2**31).to_bytes(4, "little") + b".",
        "endless nesting": b"\x80\x02" + b"]" * 300_000 + b"a" * 299_999 + b".",
        "itself inside": b"\x80\x02}q\x00U\x0dknown_classesh\x00s.",
        "numpy": pickle.dumps({"known_classes": np.arange(2), "unknown_classes": [2, 3, 4]}),
        "range": pickle.dumps({"known_classes": range(2), "unknown_classes": [2, 3, 4]}),
    }


def test_hostile_pickles_run_nothing(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    cases = hostile(canary)
    assert len(cases) > 50
    tracemalloc.start()
    for name, content in cases.items():
        with pytest.raises(DataError) as caught:
            read(content)
        assert not canary.exists(), name
        assert "split" in caught.value.message
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**26  # the memos alone ask for 4 GiB
    pickle.loads(cases["Touch, protocol 4, instead of the table"])  # the canary sings where nobody is careful
    assert canary.exists()


def test_only_as_much_is_read_as_a_list_of_classes_may_have(tmp_path: Path, cli, no_data: Path) -> None:
    file = tmp_path / "split.json"
    with file.open("wb") as stream:
        stream.truncate(2**36)  # a hole on the disk: 64 GiB
    result = cli("data", "split", "import", "--format", "ssb", file, "cub-200-2011")
    assert result.exit_code == 2
    assert "more than 1,048,576 bytes" in result.stderr


def test_the_command_refuses_a_hostile_file_and_keeps_nothing(tmp_path: Path, cli, no_data: Path) -> None:
    canary = tmp_path / "canary"
    file = tmp_path / "cub_osr_splits.pkl"
    for content in hostile(canary).values():
        file.write_bytes(content)
        result = cli("data", "split", "import", "--format", "ssb", file, "cub-200-2011")
        assert result.exit_code == 2
    assert not canary.exists()
    assert not list(no_data.rglob("*.toml"))


# ---- as a protocol


PUBLISHED: dict[str, tuple[int, tuple[int, ...], dict[str, int]]] = {
    "cub-200-2011": (
        0xF2650F59CE646DA3EA5A90840EEB97B56921AD1DC4DC8E9AA1,
        (0, 5, 7, 9, 11, 12, 15, 17),
        {"Easy": 32, "Medium": 34, "Hard": 34},
    ),
    "stanford-cars": (
        0xFBF77FFFFFFFFFFE2AC210356A01608000064524016510A87,
        (0, 1, 2, 7, 9, 11, 16, 20),
        {"Hard": 7, "Medium": 15, "Easy": 76},
    ),
    "fgvc-aircraft": (
        0x89000B28F8731FAF279EB4C3F,
        (0, 1, 2, 3, 4, 5, 10, 11),
        {"Hard": 13, "Medium": 17, "Easy": 20},
    ),
}
"""Old positions of the benchmark's JSON files as bits, their first ones, and how many new classes each key has."""


def published_old(dataset: str) -> list[int]:
    """Published old positions; Herbarium's are the draw in the published code, seed 0 of numpy's legacy generator."""
    if dataset == "herbarium-19":
        return np.random.RandomState(0).choice(range(683), size=(341,), replace=False).tolist()
    bits, first, _ = PUBLISHED[dataset]
    old = [position for position in range(bits.bit_length()) if bits >> position & 1]
    assert tuple(old[: len(first)]) == first
    return old


def published(dataset: str, seed: int = 0) -> dict[str, object]:
    """A file as the published one, its classes in an order of its own."""
    old = published_old(dataset)
    new = sorted(set(range(len(load_card(dataset).classes))) - set(old))
    chance = random.Random(seed)
    chance.shuffle(old)
    chance.shuffle(new)
    rest = iter(new)
    sizes = PUBLISHED[dataset][2] if dataset in PUBLISHED else None
    groups = {key: list(islice(rest, size)) for key, size in sizes.items()} if sizes else new
    assert not sizes or not list(rest)
    return {"known_classes": old, "unknown_classes": groups}


def of_my_own(dataset: str, old: int) -> dict[str, object]:
    """A list that nobody published: the first classes."""
    return {"known_classes": list(range(old)), "unknown_classes": list(range(old, len(load_card(dataset).classes)))}


def test_an_imported_split_is_a_protocol_of_the_dataset(tmp_path: Path, cli, no_data: Path) -> None:
    file = tmp_path / "cub_ssb_splits.json"
    file.write_text(json.dumps(published("cub-200-2011")))
    result = cli("data", "split", "import", "--format", "ssb", file, "cub-200-2011")
    assert result.exit_code == 0, result.output
    assert "100 old and 100 new classes" in result.stdout
    card = card_of("cub-200-2011", get_manager())
    protocol = named_protocol("ssb", card, "cub-200-2011")
    assert card is not None
    assert card.default_protocol == "half"  # what is installed or imported changes no default
    assert protocol.old_classes([30] * 200, card.classes) == tuple(published_old("cub-200-2011"))
    assert "ssb:" in cli("data", "show", "cub-200-2011").stdout
    file.write_text(json.dumps(published("cub-200-2011", seed=1)))
    assert cli("data", "split", "import", "--format", "ssb", file, "cub-200-2011").exit_code == 0  # in any order
    file.write_text(json.dumps(of_my_own("cub-200-2011", 100)))
    mine = ("data", "split", "import", "--format", "ssb", file, "cub-200-2011", "--name")
    assert cli(*mine, "mine").exit_code == 0
    file.write_text(json.dumps(of_my_own("cub-200-2011", 99)))
    other = cli(*mine, "mine")
    assert other.exit_code == 2
    assert "--name NAME" in other.stderr
    for name in ("half", "../x", "A"):
        assert cli(*mine, name).exit_code == 2


@pytest.mark.parametrize("dataset", ["cub-200-2011", "stanford-cars", "fgvc-aircraft", "herbarium-19"])
def test_only_the_published_list_has_the_name_of_the_benchmark(
    dataset: str, tmp_path: Path, cli, no_data: Path
) -> None:
    """Results stand beside the literature by this name. Forms of the file that list the same classes are the same."""
    file = tmp_path / "split"
    command = ("data", "split", "import", "--format", "ssb", file, dataset)
    old = published_old(dataset)
    for split, said in (
        (of_my_own(dataset, 3), "old classes, and this one 3"),
        (of_my_own(dataset, len(old)), "other old classes than this one"),
    ):
        file.write_text(json.dumps(split))
        result = cli(*command)
        assert result.exit_code == 2
        assert said in result.stderr
        assert "--name NAME" in result.stderr
        assert not list(no_data.rglob("*.toml"))
        assert cli(*command, "--name", f"mine-{len(said)}").exit_code == 0
        shutil.rmtree(no_data / "share")
    file.write_text(json.dumps(published(dataset)))
    result = cli(*command, "--label-fraction", 0.1)
    assert result.exit_code == 2
    assert "50 % of the images of old classes labelled, not 10 %" in result.stderr
    # One old class exchanged for a new one.
    every = set(range(len(load_card(dataset).classes)))
    new = min(every - set(old))
    file.write_bytes(pickle.dumps({"Old": [new, *old[1:]], "New": sorted(every - {new, *old[1:]})}))
    assert "other old classes" in cli(*command).stderr
    file.write_bytes(pickle.dumps({"Old": old, "New": sorted(every - set(old))}))
    assert cli(*command).exit_code == 0


def test_a_dataset_outside_the_benchmark_has_no_protocol_of_its_name(tmp_path: Path, cli, no_data: Path) -> None:
    file = tmp_path / "split.json"
    file.write_text(json.dumps(of_my_own("cifar10", 5)))
    result = cli("data", "split", "import", "--format", "ssb", file, "cifar10")
    assert result.exit_code == 2
    assert "knows no list" in result.stderr
    assert cli("data", "split", "import", "--format", "ssb", file, "cifar10", "--name", "mine").exit_code == 0


def test_a_kept_list_that_was_changed_loses_the_name(tmp_path: Path, cli, no_data: Path) -> None:
    file = tmp_path / "split.json"
    file.write_text(json.dumps(published("fgvc-aircraft")))
    cli("data", "split", "import", "--format", "ssb", file, "fgvc-aircraft")
    [kept] = no_data.rglob("ssb.toml")
    kept.write_text(kept.read_text().replace('"707-320"', '"737-600"'))
    result = cli("data", "show", "fgvc-aircraft")
    assert result.exit_code == 2
    assert "other old classes" in result.stderr
    assert str(kept) in result.stderr


def test_a_list_of_classes_without_its_format_is_told_the_format(tmp_path: Path, cli, no_data: Path) -> None:
    for name, content in (
        ("split.json", json.dumps(published("fgvc-aircraft")).encode()),
        ("split.pkl", pickle.dumps(published("fgvc-aircraft"))),
    ):
        (tmp_path / name).write_bytes(content)
        result = cli("data", "split", "import", tmp_path / name, "fgvc-aircraft")
        assert result.exit_code == 2
        assert "--format ssb" in result.stderr
    assert "--format ssb" not in cli("data", "split", "import", tmp_path / "none.json", "fgvc-aircraft").stderr


def test_a_split_of_another_dataset_is_refused(tmp_path: Path, cli, no_data: Path) -> None:
    file = tmp_path / "split.json"
    file.write_text(json.dumps(published("fgvc-aircraft")))
    assert "neither as old" in cli("data", "split", "import", "--format", "ssb", file, "stanford-cars").stderr
    file.write_text(json.dumps(published("stanford-cars")))
    assert (
        "not a class of this dataset" in cli("data", "split", "import", "--format", "ssb", file, "fgvc-aircraft").stderr
    )


def test_a_damaged_kept_protocol_is_one_sentence(tmp_path: Path, cli, no_data: Path) -> None:
    file = tmp_path / "split.json"
    file.write_text(json.dumps(published("fgvc-aircraft")))
    cli("data", "split", "import", "--format", "ssb", file, "fgvc-aircraft")
    [kept] = no_data.rglob("ssb.toml")
    for content in ("old_classes = [", 'old_classes = ["Zeppelin"]\nlabel_fraction = 0.5\ncitation = "x"\n', "a = 1\n"):
        kept.write_text(content)
        result = cli("data", "show", "fgvc-aircraft")
        assert result.exit_code == 2
        assert "damaged" in result.stderr


# ---- published statistics on label lists of the full size


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
