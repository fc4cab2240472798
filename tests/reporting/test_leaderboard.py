"""A leaderboard shows what was verified and scored again, names what was refused, and gives nobody away."""

from __future__ import annotations

import hashlib
import json
import re
import statistics
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from gcdbench.metrics.error_terms import TERMS
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.request import Request
from gcdbench.testing.stored import FakeRun, write_fake_run

Cli = Callable[..., Result]
HOSTILE = '<script>document.title="hostile"</script>'
MANAGER = PluginManager(points=[])
ROW = re.compile(r'<tr><th scope="row" class="label">(\w+)</th>(.*?)</tr>', re.S)


def store(folder: Path, method: str, seeds: range, accuracy: float, extra: dict[str, str] | None = None) -> None:
    for seed in seeds:
        request = Request(method=method, dataset="phantom", preset="smoke", seed=seed)
        write_fake_run(folder, FakeRun(request=request, accuracy=accuracy, extra=extra or {}), MANAGER)


@pytest.fixture
def archives(cli: Cli, tmp_path: Path) -> tuple[Path, Path]:
    """Two archives from two stores."""
    made = []
    for method, accuracy in (("simgcd", 0.7), ("legogcd", 0.9)):
        runs = tmp_path / f"runs-of-{method}"
        store(runs, method, range(3), accuracy)
        target = tmp_path / "submitted" / f"secret-ward-{method}.zip"
        result = cli("export", str(target), "--runs", str(runs))
        assert result.exit_code == 0, result.output
        made.append(target)
    return made[0], made[1]


def tamper(archive: Path) -> None:
    """Raise a score and mend the manifest's hash, as somebody would who wants to be first."""
    with zipfile.ZipFile(archive) as old:
        contents = {name: old.read(name) for name in old.namelist()}
    name = next(name for name in contents if name.endswith("scores.json"))
    contents[name] = re.sub(rb'("all": *)[\d.]+', rb"\g<1>99.9", contents[name], count=1)
    manifest = json.loads(contents["manifest.json"])
    manifest["files"][name] = {"size": len(contents[name]), "sha256": hashlib.sha256(contents[name]).hexdigest()}
    contents["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(archive, "w") as new:
        for member, content in contents.items():
            new.writestr(member, content)


def pages(site: Path) -> dict[str, str]:
    return {path.relative_to(site).as_posix(): path.read_text() for path in sorted(site.rglob("*.html"))}


def test_medians_and_links_to_cards(cli: Cli, archives: tuple[Path, Path], tmp_path: Path) -> None:
    site = tmp_path / "site"
    result = cli("leaderboard", str(archives[0].parent), "-o", str(site))
    assert result.exit_code == 0, result.output
    found = pages(site)
    rows = ROW.findall(found["board-1.html"])
    assert [name for name, _ in rows] == ["legogcd", "simgcd"]  # the higher median first
    for method, row in rows:
        runs = [RunDirectory(path).record() for path in (tmp_path / f"runs-of-{method}").glob("*/*/*")]
        values = [run.scores.sets["transductive"].scores["all"] for run in runs if run.scores]
        shown = [float(value) for value in re.findall(r'data-value="([\d.]+)"', row)]
        assert shown[:3] == [3, 1, pytest.approx(statistics.median(values))]
        linked = set(re.findall(r'href="(runs/\w+\.html)"', row))
        assert linked == {f"runs/{run.run_id}.html" for run in runs}
        assert linked <= set(found)
        first = RunDirectory(next((tmp_path / f"runs-of-{method}").glob("*/*/*"))).record()
        card = [float(value) for value in re.findall(r'data-value="([\d.]+)"', found[f"runs/{first.run_id}.html"])]
        assert first.scores
        scores = first.scores.sets["transductive"].scores
        assert card[:7] == pytest.approx([scores[key] for key in ("all", "old", "new", *TERMS)])


def test_a_tampered_archive_is_refused_and_named(cli: Cli, archives: tuple[Path, Path], tmp_path: Path) -> None:
    tamper(archives[0])
    result = cli("leaderboard", *map(str, archives), "-o", str(tmp_path / "site"))
    assert result.exit_code == 1
    assert f"refused: {archives[0]}" in result.stderr
    assert f"refused: {archives[1]}" not in result.stderr
    found = pages(tmp_path / "site")
    assert [name for name, _ in ROW.findall(found["board-1.html"])] == ["legogcd"]
    assert not any("simgcd" in text for name, text in found.items() if name != "index.html")
    assert hashlib.sha256(archives[0].read_bytes()).hexdigest()[:16] in found["index.html"]


def test_rows_of_one_name_are_told_apart_and_a_single_run_is_not_the_only_winner(cli: Cli, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    store(runs, "simgcd", range(5), 0.7)
    lucky = Request(method="simgcd", dataset="phantom", preset="smoke", seed=0, overrides={"lr": 0.01})
    run = write_fake_run(runs, FakeRun(request=lucky, accuracy=0.95), MANAGER)
    assert cli("export", str(tmp_path / "a.zip"), "--runs", str(runs)).exit_code == 0
    assert cli("leaderboard", str(tmp_path / "a.zip"), "-o", str(tmp_path / "site")).exit_code == 0
    found = pages(tmp_path / "site")
    rows = [row for _, row in ROW.findall(found["board-1.html"])]
    assert [re.findall(r"lr=[\d.]+", row) for row in rows] == [["lr=0.01"], []]
    assert "lr=0.01" in found[f"runs/{run.path.name}.html"]
    said = " ".join(found["index.html"].split())
    assert re.search(r"Highest median of All: [\d.]+ % by simgcd with lr=0.01 \(n = 1\); .* by simgcd \(n = 5\)", said)


def test_no_page_holds_a_path_a_file_name_or_a_picture(cli: Cli, archives: tuple[Path, Path], tmp_path: Path) -> None:
    tamper(archives[0])
    cli("leaderboard", *map(str, archives), "-o", str(tmp_path / "site"))
    for name, text in pages(tmp_path / "site").items():
        for word in ("secret-ward", str(tmp_path), "<img", "data:image"):
            assert word not in text, (name, word)


def test_texts_of_an_archive_are_no_markup(cli: Cli, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    store(runs, "simgcd", range(1), 0.7, {"variant": HOSTILE, "preset": HOSTILE})
    assert cli("export", str(tmp_path / "a.zip"), "--runs", str(runs)).exit_code == 0
    assert cli("leaderboard", str(tmp_path / "a.zip"), "-o", str(tmp_path / "site")).exit_code == 0
    found = pages(tmp_path / "site")
    assert not any(HOSTILE in text for text in found.values())
    assert any("&lt;script&gt;" in text for text in found.values())


def test_the_same_archives_give_the_same_pages_and_only_a_leaderboard_is_replaced(
    cli: Cli, archives: tuple[Path, Path], tmp_path: Path
) -> None:
    site, own = tmp_path / "site", tmp_path / "own"
    cli("leaderboard", *map(str, archives), "-o", str(site))
    first = pages(site)
    assert cli("leaderboard", *map(str, archives), "-o", str(site)).exit_code == 0
    assert pages(site) == first
    own.mkdir()
    (own / "thesis.txt").write_text("years of work")
    assert cli("leaderboard", *map(str, archives), "-o", str(own)).exit_code != 0
    assert [path.name for path in own.iterdir()] == ["thesis.txt"]


def test_a_run_in_two_archives_counts_once(cli: Cli, archives: tuple[Path, Path], tmp_path: Path) -> None:
    again = tmp_path / "again.zip"
    again.write_bytes(archives[0].read_bytes())
    cli("leaderboard", str(archives[0]), str(again), "-o", str(tmp_path / "site"))
    [(_, row)] = ROW.findall(pages(tmp_path / "site")["board-1.html"])
    assert 'data-value="3"' in row


def test_what_is_no_archive_is_said(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert cli("leaderboard", str(tmp_path / "empty"), "-o", str(tmp_path / "site")).exit_code != 0
    assert cli("leaderboard", str(tmp_path / "absent.zip"), "-o", str(tmp_path / "site")).exit_code != 0
    assert not (tmp_path / "site").exists()
