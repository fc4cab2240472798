"""``data show`` and durations for data of one's own, as for named sets; two folders of one name are told apart."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from gcdbench.datasets.catalogue import expected_images
from gcdbench.plugins.manager import get_manager
from tests.data.conftest import noise_image


def test_the_card_of_a_folder(cli, make_folder, cache: Path) -> None:
    make_folder({"a": 4, "b": 3}, name="set/Training")
    root = make_folder({"a": 2, "b": 1}, name="set/Testing", seed=70).parent
    card = json.loads(cli("data", "show", f"folder:{root}", "--json").stdout)
    assert card["classes"] == ["a", "b"]
    assert card["counts"] == [4, 3]
    assert card["test_counts"] == [2, 1]
    text = cli("data", "show", f"folder:{root}").stdout
    assert "train 7, test 3" in text
    assert "4 + 2" in text
    assert "Training:train" in text
    plain = cli("data", "show", f"folder:{root / 'Training'}").stdout
    assert "7" in plain
    assert "There is no 'nowhere'" in cli("data", "show", "folder:nowhere").stderr


def test_two_folders_of_one_name_have_other_contents(cli, make_folder, tmp_path: Path, cache: Path) -> None:
    def contents(root: Path) -> str:
        return json.loads(cli("data", "show", f"folder:{root}", "--json").stdout)["contents"]

    one = make_folder({"a": 3, "b": 3}, name="one/images")
    two = make_folder({"a": 3, "b": 3}, name="two/images", seed=500)
    copy = tmp_path / "three" / "images"
    for label in "ab":
        (copy / label).mkdir(parents=True)
        for path in (one / label).iterdir():
            shutil.copy(path, copy / label / f"renamed-{path.name}")
    assert contents(one) == contents(copy) != contents(two)
    (copy / "a" / "renamed-0000.png").rename(copy / "b" / "moved.png")
    assert contents(one) != contents(copy)


def test_how_many_images_a_run_will_meet(make_folder, tmp_path: Path) -> None:
    root = make_folder({"a": 3, "b": 3})
    manager = get_manager()
    folder, listed = manager.get("datasets", "folder"), manager.get("datasets", "csv")
    assert expected_images(folder, {}, argument=str(root)) == 6
    assert expected_images(manager.get("datasets", "kvasir"), {}) == 4000
    assert expected_images(folder, {}, argument="nowhere") is None
    noise_image(1).save(tmp_path / "x.png")
    (tmp_path / "list.csv").write_text("path,label\nx.png,a\n")
    assert expected_images(listed, {}, argument=str(tmp_path / "list.csv")) == 1
