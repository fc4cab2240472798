"""Cards: what is refused, and whether the shipped ones are true."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gcdbench.core.errors import DataError
from gcdbench.datasets.builtin import MEDMNIST, gcdbench_datasets
from gcdbench.datasets.card import datasets_folder, load_card

GOOD = """
name = "x"
title = "X"
modality = "m"
licence = "l"
citation = "c"
source = "s"
layout = "y"
[[classes]]
name = "a"
count = 3
[[classes]]
name = "b"
count = 4
"""

PROTOCOL = """
[protocols.theirs]
old_classes = 1
label_fraction = 0.2
citation = "who"
"""

SPLIT = f"""
[published_splits.theirs]
old_count = 1
old_sha256 = "{"ab" * 32}"
label_fraction = 0.2
citation = "who"
"""

NAMES = sorted(folder.name for folder in datasets_folder().iterdir() if (folder / "card.toml").is_file())


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "card.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_good_card(tmp_path: Path) -> None:
    card = load_card(write(tmp_path, GOOD))
    assert card.classes == ("a", "b")
    assert card.counts == (3, 4)
    assert card.total == 7
    assert card.test_counts is None
    split = load_card(write(tmp_path, GOOD + SPLIT)).published_splits["theirs"]
    assert (split.old_count, split.old_sha256[:4], split.label_fraction) == (1, "abab", 0.2)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda t: t.replace('title = "X"', ""), "'title' is missing"),
        (lambda t: t.replace('title = "X"', "title = 3"), "'title' must be a string"),
        (lambda t: t.replace('title = "X"', 'titel = "X"\ntitle = "X"'), "unknown field 'titel'"),
        (lambda t: "count_range = [3]\n" + t, "list of two whole numbers"),
        (lambda t: "count_range = [3, 2]\n" + t, "smaller number first"),
        (lambda t: t.replace("count = 4", ""), "every class or for none"),
        (lambda t: t.replace("count = 4", "count = -4"), "whole number"),
        (lambda t: t.replace("count = 4", "count = true"), "whole number"),
        (lambda t: t.replace('name = "b"', 'name = "a"'), "'a' is listed twice"),
        (lambda t: t.replace('name = "b"', 'nome = "b"'), "unknown field 'nome'"),
        (lambda t: t + '[checksums]\n"f.zip" = "md5:123"\n', "checksums.f.zip"),
        (lambda t: t + PROTOCOL.replace("= 1", "= 2"), "between 1 and 1"),
        (lambda t: t + PROTOCOL.replace("= 1", "= 0"), "between 1 and 1"),
        (lambda t: t + PROTOCOL.replace("= 1", "= true"), "whole number"),
        (lambda t: t + PROTOCOL.replace("= 1", '= ["c"]'), "names the class 'c', which the card does not have"),
        (lambda t: t + PROTOCOL.replace("= 1", '= ["a", "a"]'), "each once"),
        (lambda t: t + PROTOCOL.replace("= 1", '= ["a", "b"]'), "not all of them"),
        (lambda t: t + PROTOCOL.replace("= 1", "= []"), "at least one class"),
        (lambda t: t + PROTOCOL.replace("0.2", "0.0"), "above 0 and at most 1"),
        (lambda t: t + PROTOCOL.replace("0.2", "1.5"), "above 0 and at most 1"),
        (lambda t: t + PROTOCOL.replace("0.2", '"all"'), "above 0 and at most 1"),
        (lambda t: t + PROTOCOL.replace('citation = "who"', ""), "'protocols.theirs' lacks 'citation'"),
        (lambda t: t + PROTOCOL.replace("old_classes", "old"), "unknown field 'old'"),
        (lambda t: t + PROTOCOL.replace("theirs", "half"), "name of a protocol for any dataset"),
        (lambda t: t + PROTOCOL.replace("theirs", '"a+b"'), "lower-case letters, digits, dots and hyphens"),
        (lambda t: t + "[protocols]\ntheirs = 3\n", "'protocols.theirs' must be a table"),
        (lambda t: "protocols = 3\n" + t, "'protocols' must be a table"),
        (lambda t: 'default_protocol = "theirs"\n' + t, "no [protocols.theirs]"),
        (lambda t: "default_protocol = 1\n" + t, "'default_protocol' must be a string"),
        (lambda t: t + "[samples]\ntrain = '3'\n", "'samples.train' must be a whole number"),
        (lambda t: t + SPLIT.replace("= 1", "= 2"), "'published_splits.theirs.old_count' must be between 1 and 1"),
        (lambda t: t + SPLIT.replace("abab", "abaB"), "'published_splits.theirs.old_sha256' must have 64 hex digits"),
        (lambda t: t + SPLIT.replace("0.2", "0"), "'published_splits.theirs.label_fraction' must be a number above 0"),
        (
            lambda t: t + SPLIT.replace('citation = "who"', ""),
            "'published_splits.theirs' must be a table with old_count",
        ),
        (lambda t: "published_splits = 3\n" + t, "'published_splits' must be a table"),
        (lambda t: t + "oops", "not valid TOML"),
    ],
)
def test_a_wrong_card_is_refused_with_file_and_field(tmp_path: Path, change, complaint: str) -> None:
    path = write(tmp_path, change(GOOD))
    with pytest.raises(DataError) as caught:
        load_card(path)
    assert complaint in caught.value.message
    assert str(path) in caught.value.message


def test_a_missing_card_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no dataset card"):
        load_card(tmp_path / "none.toml")


@pytest.mark.parametrize("name", NAMES)
def test_the_layout_names_the_place_that_fetching_and_instructions_name(name: str) -> None:
    card = load_card(name)
    if card.places:
        assert f"<root>/{card.places[0]}" in card.layout


def test_every_registered_dataset_has_its_card_and_every_card_is_registered() -> None:
    named = {spec.name: spec for spec in gcdbench_datasets() if not spec.takes_argument}
    assert set(named) == set(NAMES)
    for name, spec in named.items():
        assert load_card(Path(str(spec.card))).name == name


@pytest.mark.parametrize("name", NAMES)
def test_counts_of_a_card_add_up(name: str) -> None:
    card = load_card(name)
    assert card.citation
    assert card.licence
    if card.counts is not None and card.samples:
        assert sum(card.counts) == card.samples["train"]
        assert sum(card.test_counts or ()) == card.samples.get("test", 0)


@pytest.mark.parametrize(("name", "share"), [("kvasir", 1 / 3), ("nct-crc-he-100k", 0.360)])
def test_counts_give_the_papers_old_share(name: str, share: float) -> None:
    """w follows from counts alone: half of the old images against all others."""
    card = load_card(name)
    assert card.counts is not None
    first = card.protocols["paper-stated"].old_classes
    assert isinstance(first, int)
    old, new = sum(card.counts[:first]), sum(card.counts[first:])
    assert old / 2 / (old / 2 + new) == pytest.approx(share, abs=5e-4)


def test_medmnist_cards_say_what_the_package_says(tmp_path: Path) -> None:
    """The package's own file is executed in another process (it creates a folder in the home directory)."""
    code = (
        "import importlib.util, json, runpy, os;"
        "place = importlib.util.find_spec('medmnist').submodule_search_locations[0];"
        "print(json.dumps(runpy.run_path(os.path.join(place, 'info.py'))['INFO']))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], env={"HOME": str(tmp_path)}, capture_output=True, check=True, text=True
    )
    info = json.loads(output.stdout)
    single = {name for name, item in info.items() if not name.endswith("3d") and "multi-label" not in item["task"]}
    assert set(MEDMNIST) == single
    for name in single:
        card, item = load_card(name), info[name]
        assert list(card.classes) == [item["label"][str(i)] for i in range(len(item["label"]))]
        assert dict(card.samples) == item["n_samples"]
        assert card.licence == item["license"]
        for suffix in ("", "_64", "_128", "_224"):
            assert card.checksums[f"{name}{suffix}.npz"] == "md5:" + item[f"MD5{suffix}"]
            assert card.downloads[f"{name}{suffix}.npz"] == item[f"url{suffix}"]
