"""Published splits of classes: both forms, both formats, every contradiction, and pickles that would like to run."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from gcdbench.core.errors import DataError
from gcdbench.datasets.card import load_card
from gcdbench.datasets.protocols import card_of, named_protocol
from gcdbench.plugins.manager import get_manager
from gcdbench.splits.class_split import read_class_split
from tests.splits.published_lists import published, published_old

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
