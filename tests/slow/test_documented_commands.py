"""What the pages tell a newcomer to type works, in the order in which it is told."""

from __future__ import annotations

import re
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.runs.own_images import draw_classes
from tests.slow.documented import ROOT, at_smoke_settings, blocks, commands, commands_in_sentences, shell

pytestmark = pytest.mark.slow


def test_start(tmp_path: Path) -> None:
    pytest.importorskip("gcdbench_medxplore")
    lines = [at_smoke_settings(line) for line in commands("index.md") if not line.startswith("pip install")]
    last = "$(basename $(ls -dt runs/phantom/simgcd/* | head -1))"
    printed = shell([re.sub(r"\bRUN\b", last, line) for line in lines], tmp_path)
    assert "Next: compare" in printed
    assert re.search(r"phantom +medxplore", printed)
    assert re.search(r"phantom +simgcd", printed)
    assert "<html" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "examples.svg").read_text(encoding="utf-8").count("<image") > 1


def test_from_a_clone_to_a_method_compared_with_simgcd(tmp_path: Path) -> None:
    """The newcomer's path: clone, install, write the page's files, type its commands, read a paired test.

    The environment is new. What gcdbench depends on is taken from this one, so that nothing is downloaded.
    """
    clone, environment = tmp_path / "clone", tmp_path / "venv"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    venv.create(environment, with_pip=True)
    install = next(line for line in commands("index.md") if line.startswith("pip install"))
    programs = environment / "bin"
    dependencies = {"PYTHONPATH": sysconfig.get_path("purelib")}
    offline = {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}  # 0 is what pip takes for yes
    shell([install], clone, programs=programs, **dependencies, **offline)
    where = shell(
        ["python -c 'import gcdbench; print(gcdbench.__file__)'"], tmp_path, programs=programs, **dependencies
    )
    assert where.startswith(str(clone))
    files = iter(["agree.py", "agreement.toml", "pseudo.py"])
    for kind, text in blocks("write/method.md"):
        if kind in ("python", "toml") and (name := next(files, None)):
            (tmp_path / name).write_text(text, encoding="utf-8")
    lines = [at_smoke_settings(line) for line in commands("write/method.md")]
    printed = shell(lines, tmp_path, programs=programs, **dependencies)
    assert "SimGCD + agreement" in printed
    assert re.search(r"\bp\b", printed)
    assert len(list(tmp_path.glob("runs/phantom/agree/*/scores.json"))) >= 6
    assert "SimGCD + agreement" in (tmp_path / "agreement.html").read_text(encoding="utf-8")


def test_compare_methods(tmp_path: Path) -> None:
    """The page's suite with its preset at smoke settings, its blocks, and the commands within its sentences."""
    pytest.importorskip("gcdbench_medxplore")
    [suite] = [text for kind, text in blocks("compare.md") if kind == "toml"]
    (tmp_path / "mine.toml").write_text(suite.replace("presets.laptop", "presets.smoke"), encoding="utf-8")
    lines = [at_smoke_settings(line) for line in commands("compare.md")]
    told = [
        line for line in commands_in_sentences("compare.md") if line.startswith(("gcdbench table", "gcdbench list"))
    ]
    assert told
    printed = shell([*lines, *told], tmp_path)
    compared = printed.partition("differences to SimGCD")[2]
    assert re.search(r"^MedXplore +6 .*\d\.\d+", compared, re.MULTILINE)
    assert "is too small for any p" not in printed
    assert len(list(tmp_path.glob("runs/phantom/*/*/scores.json"))) >= 2 * 6
    assert "MedXplore against SimGCD" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_your_own_images(tmp_path: Path) -> None:
    """The page's folders, filled with drawn images; RUN is the one that the first command stored."""
    drawn = draw_classes(tmp_path / "drawn")
    assert drawn
    made = sorted(path for path in (tmp_path / "drawn").iterdir() if path.is_dir())
    truth = ["path,label"]
    for number, folder in enumerate(made):
        for place, image in enumerate(sorted(folder.iterdir())):
            known = number < 2 and place % 2 == 0
            target = tmp_path / "known" / folder.name if known else tmp_path / "pile"
            target.mkdir(parents=True, exist_ok=True)
            moved = image.rename(target / f"{folder.name}-{image.name}")
            if not known:
                truth.append(f"{moved.relative_to(tmp_path)},{folder.name}")
    (tmp_path / "truth.csv").write_text("\n".join(truth) + "\n", encoding="utf-8")
    (tmp_path / "more_images").symlink_to(tmp_path / "pile")
    run = "$(basename $(ls -d runs/discovery/*/* | head -1))"
    lines = [re.sub(r"\bRUN\b", run, at_smoke_settings(line)) for line in commands("own-images.md")]
    printed = shell(lines, tmp_path)
    assert (tmp_path / "found" / "gallery.html").is_file()
    assert (tmp_path / "more.csv").read_text(encoding="utf-8").startswith("path,")
    assert "All" in printed
