"""``gcdbench data`` as a user calls it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gcdbench.core.disk_space import format_bytes
from gcdbench.datasets.card import load_card
from gcdbench.splits.split_file import read_split
from tests.data.conftest import noise_image


@pytest.fixture
def small_kvasir(tmp_path: Path, no_data: Path, cache: Path) -> Path:
    """Kvasir's folders with 6 images each: found, but not complete."""
    root = tmp_path / "data"
    for number, label in enumerate(load_card("kvasir").classes):
        folder = root / "kvasir" / "kvasir-dataset" / label
        folder.mkdir(parents=True)
        for index in range(6):
            noise_image(100 * number + index).save(folder / f"{index}.png")
    return root


def test_list_without_data(cli, no_data: Path) -> None:
    listed = json.loads(cli("data", "list", "--json").stdout)
    states = {item["name"]: item["state"] for item in listed["datasets"]}
    assert states["kvasir"] == states["organamnist"] == "missing"
    assert states["phantom"] == "built-in"
    assert all(str(no_data) in root for root in listed["roots"])
    assert "kvasir" in cli("data", "list").stdout


def test_list_with_data(cli, small_kvasir: Path) -> None:
    (small_kvasir / "bloodmnist_64.npz").write_bytes(b"123")
    listed = json.loads(cli("data", "list", "--json", "--data-root", small_kvasir).stdout)
    found = {item["name"]: item for item in listed["datasets"]}
    assert found["kvasir"]["state"] == "here"
    assert (found["kvasir"]["images"], found["kvasir"]["expected"]) == (48, 4000)
    assert found["kvasir"]["bytes"] == sum(path.stat().st_size for path in small_kvasir.rglob("*.png"))
    assert found["bloodmnist"]["bytes"] == 3
    assert "48 images of 4,000" in cli("data", "list", "--data-root", small_kvasir).stdout


def test_missing_data_is_one_sentence(cli, no_data: Path) -> None:
    result = cli("data", "verify", "kvasir")
    assert result.exit_code == 2
    sentence = result.stderr.splitlines()[0]
    assert "not on this machine" in sentence
    assert str(no_data) in sentence
    assert "gcdbench data fetch kvasir" in sentence


def test_unknown_and_malformed_names(cli, no_data: Path) -> None:
    assert "did you mean 'kvasir'" in cli("data", "show", "kvassir").stderr
    assert "needs a path" in cli("data", "audit", "folder").stderr
    assert "takes no argument" in cli("data", "audit", "kvasir:x").stderr
    assert "not of the form" in cli("data", "audit", "kvasir", "--dataset-set", "x").stderr


def test_show(cli) -> None:
    text = cli("data", "show", "ham10000").stdout
    assert "lesion_id" in text
    assert "6,705" in text
    card = json.loads(cli("data", "show", "organamnist", "--json").stdout)
    assert card["classes"][0] == "bladder"
    assert card["checksums"]["organamnist.npz"] == "md5:68e3f8846a6bd62f0c9bf841c0d9eacc"


def test_verify_fails_on_a_partial_copy(cli, small_kvasir: Path) -> None:
    result = cli("data", "verify", "kvasir", "--data-root", small_kvasir, "--workers", 1)
    assert result.exit_code == 1
    assert "class polyps has 6 training images, the card says 500" in result.stdout
    report = json.loads(cli("data", "verify", "kvasir", "--data-root", small_kvasir, "--json").stdout)
    assert report["ok"] is False
    assert len([finding for finding in report["findings"] if finding["kind"] == "counts"]) == 8


def test_audit_writes_a_report_and_touches_nothing(cli, make_folder, tmp_path: Path) -> None:
    root = make_folder({"a": 30, "b": 5})
    shutil.copy(root / "a" / "0000.png", root / "b" / "twin.png")
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    output = tmp_path / "report.txt"
    result = cli("data", "audit", f"folder:{root}", "-o", output)
    assert result.exit_code == 1
    assert "a/0000.png (a)  |  b/twin.png (b)" in result.stdout
    assert "b/twin.png" in output.read_text()
    report = json.loads(cli("data", "audit", f"folder:{root}", "--json").stdout)
    assert report["findings"][0]["kind"] == "exact-across-classes"
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_prepare_announces_its_size_and_the_cache_lists_it(cli, make_folder, cache: Path) -> None:
    root = make_folder({"a": 5, "b": 5})
    result = cli("data", "prepare", f"folder:{root}", "--image-size", 28)
    assert result.exit_code == 0
    assert "10 images for 28 px input: 31 kB" in result.stderr
    listed = json.loads(cli("data", "cache", "list", "--json").stdout)
    [item] = listed["entries"]
    on_disk = sum(path.stat().st_size for path in (cache / "stores" / item["key"]).iterdir())
    assert (item["kind"], item["bytes"]) == ("stores", on_disk)
    assert format_bytes(on_disk) in cli("data", "cache", "list").stdout
    assert "0 entries" in cli("data", "cache", "trim", "--to", "1MB").stdout
    assert f"1 entries deleted, {format_bytes(on_disk)} freed" in cli("data", "cache", "clear").stdout
    assert json.loads(cli("data", "prepare", f"folder:{root}", "--image-size", 28, "--json").stdout)["images"] == 10


def test_fetch_says_what_to_do(cli, no_data: Path, small_kvasir: Path) -> None:
    assert "is here" in cli("data", "fetch", "kvasir", "--data-root", small_kvasir).stdout
    result = cli("data", "fetch", "pbc", "--data-root", small_kvasir)
    assert result.exit_code == 2
    assert "data.mendeley.com" in result.stderr
    assert "comes in one size" in cli("data", "fetch", "pbc", "--size", 28).stderr
    assert "is here: made by code" in cli("data", "fetch", "phantom").stdout


def test_an_exported_split_of_another_seed_is_named_as_a_runs_is(cli, small_kvasir: Path, tmp_path: Path) -> None:
    where = ("--data-root", small_kvasir, "--protocol", "half")
    for seed in (0, 3):
        file = tmp_path / f"{seed}.tsv"
        result = cli("data", "split", "export", "kvasir", "--split-seed", seed, "-o", file, *where)
        assert result.exit_code == 0, result.output
        kept = read_split(file).protocol
        assert (kept.name, kept.split_seed) == ("half", seed)


def test_split_export_diff_and_import(cli, small_kvasir: Path, tmp_path: Path) -> None:
    stated, implied = tmp_path / "stated.tsv", tmp_path / "implied.tsv"
    where = ("--data-root", small_kvasir)
    result = cli("data", "split", "export", "kvasir", "--protocol", "paper-stated", "-o", stated, *where)
    assert "w = 0.333" in result.stderr
    cli("data", "split", "export", "kvasir", "--protocol", "paper-implied", "-o", implied, *where)
    assert read_split(implied).old_share == pytest.approx(20 / 44)  # one of six labelled in four classes
    same = cli("data", "split", "diff", stated, stated)
    assert (same.exit_code, "The same split" in same.stdout) == (0, True)
    other = cli("data", "split", "diff", stated, implied)
    assert other.exit_code == 1
    assert "8 images have another role" in other.stdout
    imported = cli("data", "split", "import", implied, "kvasir", *where)
    assert "Byte for byte" in imported.stdout
    elsewhere = tmp_path / "elsewhere.tsv"
    elsewhere.write_text(implied.read_text().replace('"dataset":"kvasir"', '"dataset":"../../../escaped"'))
    assert elsewhere.read_text() != implied.read_text()
    imported = cli("data", "split", "import", elsewhere, "kvasir", *where)
    assert "splits/kvasir/paper-implied-" in imported.stdout
    assert not list(tmp_path.rglob("escaped"))
    (small_kvasir / "kvasir" / "kvasir-dataset" / "polyps" / "0.png").unlink()
    refused = cli("data", "split", "import", implied, "kvasir", *where)
    assert refused.exit_code == 2
    assert "1 of its images are not here" in refused.stderr


def test_an_export_is_byte_identical_in_another_process_and_under_other_names(
    small_kvasir: Path, tmp_path: Path
) -> None:
    """The second copy is elsewhere, its files have other names, and it is read with another hash seed."""
    copy = tmp_path / "other" / "kvasir-dataset"
    for path in sorted((small_kvasir / "kvasir" / "kvasir-dataset").rglob("*.png")):
        target = copy / path.parent.name / f"z{9 - int(path.stem)}.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    outputs = []
    for root, seed in ((small_kvasir, "1"), (tmp_path / "other", "2")):
        import os

        environment = {**os.environ, "GCDBENCH_DATA": str(root), "PYTHONHASHSEED": seed}
        command = [sys.executable, "-m", "gcdbench.cli.main", "data", "split", "export", "kvasir"]
        outputs.append(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == 50
    assert b"\r" not in outputs[0]


def test_lesions_stay_together_where_a_naive_split_would_tear_them(tmp_path: Path, cli, no_data: Path) -> None:
    """HAM10000's layout with three images a lesion: no lesion on two sides, and the check would see one that is."""
    from dataclasses import replace

    from gcdbench.datasets.catalogue import open_dataset
    from gcdbench.plugins.manager import get_manager
    from gcdbench.splits.manifest import make_split
    from gcdbench.splits.protocol import Protocol

    root = tmp_path / "ham10000"
    (root / "images").mkdir(parents=True)
    lines = ["lesion_id,image_id,dx"]
    for number in range(84):
        noise_image(number).save(root / "images" / f"I{number}.jpg")
        lines.append(f"L{number // 3},I{number},{load_card('ham10000').classes[number // 12]}")
    (root / "HAM10000_metadata.csv").write_text("\n".join(lines))
    source = open_dataset("ham10000", get_manager(), data_root=tmp_path)

    def torn(protocol: Protocol) -> int:
        split = make_split(
            dataset="ham10000",
            class_names=source.card.classes,
            labels=source.labels,
            sha256=[f"{number:064x}" for number in range(84)],
            protocol=protocol,
            groups=source.groups,
        )
        assert source.groups is not None
        sides = [set(split.roles[source.groups == lesion].tolist()) for lesion in np.unique(source.groups)]
        return sum(len(side) > 1 for side in sides)

    rules = Protocol(name="half")
    assert torn(rules) == 0
    assert torn(replace(rules, keep_groups=False)) > 0
