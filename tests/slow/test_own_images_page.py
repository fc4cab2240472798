"""The page "Your own images": its commands and its Python are run as they stand, in its order."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from gcdbench.runs.index import load_runs
from tests.runs.own_images import draw_classes

PAGE = Path(__file__).parents[2] / "docs" / "own-images.md"
KNOWN, NEW = ("esophagitis", "polyps"), ("cecum", "ulcer")

pytestmark = pytest.mark.slow


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


def test_from_two_folders_to_named_clusters(
    cli: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    draw_classes(tmp_path / "all", (*KNOWN, *NEW), 12)
    rows = ["path,label"]
    for file in sorted((tmp_path / "all").rglob("*.png")):
        name, number = file.parent.name, int(file.stem.split()[1])
        if number >= 10:
            target = tmp_path / "more_images" / f"{name[0]}{number}.png"
        elif name in KNOWN and number < 5:
            target = tmp_path / "known" / name / f"{number}.png"
        else:
            target = tmp_path / "pile" / f"{len(rows):04d}.png"
            rows.append(f"pile/{target.name},{name}")
        target.parent.mkdir(parents=True, exist_ok=True)
        file.rename(target)
    (tmp_path / "truth.csv").write_text("\n".join(rows), encoding="utf-8")

    commands = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]
    verbs = [shlex.split(command)[1] for command in commands]
    assert verbs[0] == "discover"
    assert {"name", "predict"} <= set(verbs)
    run = ""
    for command in commands:
        words = [run if word == "RUN" else word for word in shlex.split(command)]
        assert words[0] == "gcdbench"
        if words[1] == "name":
            number = re.search(r"# \[clusters\.(\d+)\]", Path(words[3]).read_text(encoding="utf-8"))
            assert number, "a file to fill in names the new clusters"
            with Path(words[3]).open("a", encoding="utf-8") as file:
                file.write(f'\n[clusters.{number[1]}]\nname = "fresh ulcer"\n')
        result = cli(*words[1:])
        assert result.exit_code == 0, (command, result.output)
        if words[1] == "discover" and not run:
            [entry] = load_runs(tmp_path / "runs")
            run = entry.run_id
            for name in ("predictions.csv", "gallery.html", "names.toml"):
                assert (tmp_path / "found" / name).is_file()
        if "--truth" in words:
            assert "All" in result.output
    assert "fresh ulcer" in json.dumps((tmp_path / "runs").rglob("names.toml").__next__().read_text())
    assert len((tmp_path / "more.csv").read_text(encoding="utf-8").splitlines()) == 1 + 2 * 4

    [code] = blocks("python")
    space: dict[str, object] = {}
    exec(code, space)
    assert len(space["found"].images) == len(rows) - 1  # type: ignore[attr-defined]
