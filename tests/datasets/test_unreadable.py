"""One damaged image stops everything with its path, or is left out on request, and then every run says so."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gcdbench.datasets.sources import unreadable
from tests.data.conftest import noise_image
from tests.data.loading import opened, refused

SMOKE = ("--preset", "smoke", "--set", "image_size=16")


@pytest.fixture
def damaged(make_folder) -> Path:
    """Two classes of six images and, beside them, a truncated and an empty one."""
    root = make_folder({"a": 6, "b": 6})
    (root / "a" / "cut.png").write_bytes((root / "a" / "0000.png").read_bytes()[:-200])
    (root / "b" / "empty.jpg").write_bytes(b"")
    return root


def test_damaged_images_stop_a_run_and_are_named(damaged: Path, cli) -> None:
    result = cli("run", "-m", "kmeans", "-d", f"folder:{damaged}", *SMOKE)
    assert result.exit_code == 2
    assert "2 of 14 images" in result.stderr
    assert "a/cut.png" in result.stderr
    assert "b/empty.jpg" in result.stderr
    assert "on_unreadable=skip" in result.stderr


def test_they_are_left_out_on_request_and_the_run_records_it(damaged: Path, cli, cache: Path, tmp_path: Path) -> None:
    arguments = ("run", "-m", "kmeans", "-d", f"folder:{damaged}", *SMOKE, "--dataset-set", "on_unreadable=skip")
    result = cli(*arguments)
    assert result.exit_code == 0, result.output
    assert "a/cut.png" in result.stderr
    [record] = (tmp_path / "runs").rglob("run.json")
    content = record.read_text()
    assert "2 images that cannot be read were left out" in json.loads(content)["accepted_data_issues"]
    assert "cut.png" not in content
    assert "Reused" in cli(*arguments).stdout


def test_groups_parts_and_labels_stay_with_their_images(damaged: Path, cache: Path) -> None:
    whole = opened(f"folder:{damaged}", groups="(?P<group>[0-9a-z]+)[.]")
    source = opened(f"folder:{damaged}", groups="(?P<group>[0-9a-z]+)[.]", on_unreadable="skip")
    assert len(source) == 12
    assert whole.groups is not None
    assert source.groups is not None
    place = {key: position for position, key in enumerate(whole.keys)}
    for position, key in enumerate(source.keys):
        assert source.labels[position] == whole.labels[place[key]]
        assert source.groups[position] == whole.groups[place[key]]
        assert source.raw(position) == whole.raw(place[key])
    assert {item.key for item in source.raw.ignored} == {"a/cut.png", "b/empty.jpg"}


def test_what_was_found_is_remembered_until_a_file_changes(
    damaged: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    real = unreadable._try_chunk
    monkeypatch.setattr(unreadable, "_try_chunk", lambda trial, chunk: calls.append(chunk) or real(trial, chunk))
    assert len(opened(f"folder:{damaged}", on_unreadable="skip")) == 12
    assert len(opened(f"folder:{damaged}", on_unreadable="skip")) == 12
    assert len(calls) == 1
    [file] = (cache / "hashes").glob("*.unreadable")
    file.write_bytes(file.read_bytes().replace(b'"', b"'", 1))  # a damaged memory is not believed
    assert len(opened(f"folder:{damaged}", on_unreadable="skip")) == 12
    assert len(calls) == 2
    noise_image(77).save(damaged / "a" / "cut.png")
    assert len(opened(f"folder:{damaged}", on_unreadable="skip")) == 13
    assert len(calls) == 3


def test_nothing_to_leave_out_changes_nothing(make_folder, cache: Path) -> None:
    root = make_folder({"a": 3, "b": 3})
    plain, skipping = opened(f"folder:{root}"), opened(f"folder:{root}", on_unreadable="skip")
    assert skipping.accepted_issues == ()
    assert skipping.keys == plain.keys
    assert np.array_equal(skipping.labels, plain.labels)


def test_a_list_may_name_files_that_are_gone(tmp_path: Path, cache: Path) -> None:
    for number in range(4):
        noise_image(number).save(tmp_path / f"{number}.png")
    (tmp_path / "broken.png").write_bytes(b"no image")
    (tmp_path / "folder.png").mkdir()
    names = [*(f"{number}.png" for number in range(4)), "gone.png", "folder.png", "broken.png"]
    lines = [f"{name},{'ab'[position % 2]}" for position, name in enumerate(names)]
    (tmp_path / "list.csv").write_text("path,label\n" + "\n".join(lines))
    text = f"csv:{tmp_path / 'list.csv'}"
    assert "line 6: 'gone.png'" in refused(text)
    source = opened(text, on_unreadable="skip")
    assert source.keys == ("0.png", "1.png", "2.png", "3.png")
    assert sum(int(issue.split()[0]) for issue in source.accepted_issues) == 3
    said = " ".join(remark.message for remark in source.remarks)
    assert all(name in said for name in names[4:])
    assert "must be stop or skip" in refused(text, on_unreadable="ignore")


def test_nothing_left_is_an_error(tmp_path: Path, cache: Path) -> None:
    for label in "ab":
        (tmp_path / "set" / label).mkdir(parents=True)
        (tmp_path / "set" / label / "x.png").write_bytes(b"no image")
    assert "None of the 2 images" in refused(f"folder:{tmp_path / 'set'}", on_unreadable="skip")
    (tmp_path / "list.csv").write_text("path,label\nx.png,a\n")
    assert "None of the 1 files" in refused(f"csv:{tmp_path / 'list.csv'}", on_unreadable="skip")
