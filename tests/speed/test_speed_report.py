"""Ratios of the speed benchmark from made figures, worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

loops = pytest.importorskip("benchmarks.speed.loops", reason="runs from the repository's root")
report = pytest.importorskip("benchmarks.speed.report")
claims = pytest.importorskip("benchmarks.speed.claims")
scale = pytest.importorskip("benchmarks.speed.scale")
settings = pytest.importorskip("benchmarks.speed.settings")
stores = pytest.importorskip("benchmarks.speed.stores")
growth = pytest.importorskip("benchmarks.speed.growth")

MARKED = "before\n<!-- measured: begin -->\nold\n<!-- measured: end -->\nafter\n"


def test_run_times_are_put_together_from_their_parts() -> None:
    """100 images, batch 10, 2 epochs: 20 steps of 20 views; 75 unlabelled images."""
    measured = {
        "published": {"step": 2.0, "evaluation": 0.1},
        "online": {"images": 50, "prepare": 1.0, "bank": 0.0, "step": 1.0, "evaluation": 0.02},
        "bank": {"images": 50, "prepare": 1.0, "bank": 4.0, "step": 0.25, "evaluation": 0.01},
        "side_by_side": [{"step": 0.4, "evaluation": 0.02}] * 2,
        "published_side_by_side": [{"step": 3.0, "evaluation": 0.1}] * 2,
        "products": {"products_alone": 0.2},
        "products_side_by_side": [{"products_alone": 0.25}, {"products_alone": 0.5}],
    }
    row = loops.summarise(
        settings.Settings(folder="", batch=10, views="bank:3"), [measured], total=100, epochs=2, runs=10
    )
    seconds = row["run_seconds"]
    assert seconds["published"] == pytest.approx(20 * 2 + 2 * 75 * 0.1)
    assert seconds["online"] == pytest.approx(2 * 1 + 20 * 1 + 75 * 0.02)
    assert seconds["bank"] == pytest.approx(2 * 5 + 20 * 0.25 + 75 * 0.01)
    assert seconds["bank, many runs"] == pytest.approx(2 * 5 / 10 + (20 * 0.4 + 75 * 0.02) / 2)
    assert seconds["published, many runs"] == pytest.approx((20 * 3 + 2 * 75 * 0.1) / 2)
    assert row["ratio_one_run"] == pytest.approx(55 / 15.75)
    assert row["ratio_many_runs"] == pytest.approx(37.5 / 5.75)  # against the better of the published style's two ways
    assert row["bound_one_run"] == pytest.approx(55 / (20 * 0.2))
    assert row["bound_many_runs"] == pytest.approx(37.5 / (20 / 6))  # six steps' products per second on both cores
    assert row["step_views_per_second"]["side by side"] == pytest.approx(2 * 10 * 5)
    assert row["bank_views_per_second"] == pytest.approx(50 * 4 / 4)


def test_ratios_of_several_rounds_come_with_their_range() -> None:
    """The published style takes 200 s in one round and 100 s in another; ours 20 s in both."""
    ours = {"images": 100, "prepare": 0.0, "bank": 0.0, "step": 1.0, "evaluation": 0.0}
    rounds = [
        {
            "published": {"step": step, "evaluation": 0.0},
            "online": ours,
            "bank": {**ours, "bank": 1e-9},
            "side_by_side": [ours],
            "published_side_by_side": [{"step": step, "evaluation": 0.0}],
            "products": {"products_alone": 0.5},
            "products_side_by_side": [{"products_alone": 0.5}],
        }
        for step in (10.0, 5.0)
    ]
    row = loops.summarise(settings.Settings(folder="", batch=10, views="bank:3"), rounds, total=100, epochs=2, runs=10)
    assert row["ratios_by_round"]["ratio_online"] == pytest.approx([10.0, 5.0])
    assert report.describe_ratio(row, "ratio_online") == "7.5 (5.0 to 10.0)"
    one = loops.summarise(
        settings.Settings(folder="", batch=10, views="bank:3"), rounds[:1], total=100, epochs=2, runs=10
    )
    assert report.describe_ratio(one, "ratio_online") == "10.0"


def test_a_step_is_compared_with_what_other_libraries_would_make_of_it() -> None:
    row = {"backbone": "n", "step": 2.0, "products_alone": 1.0, "ratio": 2.0, "shares": {"products": 0.5, "other": 0.5}}
    text = report.describe_step([{**row, "products_by_blas": 1.6, "products_by_numpy": 0.8}])
    assert "30 % longer with torch's BLAS library and 10 % shorter with numpy's" in text
    assert "not measured" in report.describe_step([row])


def test_tables_replace_what_stands_between_the_marks(tmp_path: Path) -> None:
    """The text around them stays, however often they are written."""
    page = tmp_path / "speed.md"
    page.write_text(MARKED)
    machine = {"cores": 2, "cpu": "c", "packages": {"torch": "t"}, "kernels": "native", "images": "made"}
    results = {"machine": machine, "when": {"startup": {"date": "d"}}, "startup": {"help": 0.35, "click": 0.15}}
    for _ in range(2):
        text = report.write_tables(results, page)
        assert "0.20 s more" in text
        content = page.read_text()
        assert content.startswith("before\n")
        assert content.endswith("\nafter\n")
        assert content.count("0.20 s more") == 1
        assert "old" not in content


def test_the_page_follows_from_the_stored_figures(tmp_path: Path) -> None:
    root = Path(report.__file__).parents[2]
    page = tmp_path / "speed.md"
    page.write_text((root / "docs" / "speed.md").read_text(encoding="utf-8"), encoding="utf-8")
    results = json.loads((root / "benchmarks" / "speed" / "speed.json").read_text(encoding="utf-8"))
    report.write_tables(results, page)
    assert page.read_text(encoding="utf-8") == (root / "docs" / "speed.md").read_text(encoding="utf-8")
    readme = tmp_path / "README.md"
    readme.write_text((root / "README.md").read_text(encoding="utf-8"), encoding="utf-8")
    claims.write_claim(results, readme)
    assert readme.read_text(encoding="utf-8") == (root / "README.md").read_text(encoding="utf-8")


def test_the_slowest_machine_is_the_one_that_is_claimed() -> None:
    """One machine has the lowest ratio of one run, another that of ten seeds, in its worse round."""
    earlier = [
        {"machine": "a", "ratios": {"n": {"ratio_one_run": 3.0, "ratio_many_runs": 9.0}}},
        {"machine": "b", "ratios": {"n": {"ratio_one_run": 5.0, "ratio_many_runs": 8.0, "ratio_online": 2.0}}},
    ]
    ratios = {"ratio_one_run": 4.0, "ratio_many_runs": 8.5, "ratio_online": 3.0}
    row = {"backbone": "n", **ratios, "ratios_by_round": {"ratio_many_runs": [10.0, 7.0]}}
    results = {"machine": {"cpu": "c"}, "when": {"loops": {"date": "today"}}, "loops": [row]}
    machines = claims.gather(results, earlier)
    assert claims.lowest(machines, "n", "ratio_one_run") == (3.0, "a")
    assert claims.lowest(machines, "n", "ratio_many_runs") == (7.0, "c, today")
    claim = claims.make_claim(machines, "n")
    assert "3.0" in claim
    assert "7.0" in claim


@pytest.mark.parametrize(
    ("arguments", "published"),
    [
        (["--only", "startup"], False),
        (["--output", "elsewhere.json", "--only", "startup"], False),
        (["--output", "elsewhere.json"], False),
        (["--only", "startup", "--publish"], True),
        ([], True),
    ],
)
def test_only_a_full_measurement_or_an_express_wish_changes_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], published: bool
) -> None:
    """Other sections of the published figures stay even then."""
    speed = pytest.importorskip("benchmarks.speed.__main__")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(speed, "SECTIONS", ("startup",))
    monkeypatch.setattr(speed, "run_section", lambda *_: {"help": 0.35, "click": 0.15})
    machine = {"cores": 2, "cpu": "c", "packages": {"torch": "t"}, "kernels": "native"}
    monkeypatch.setattr(speed, "describe_machine", lambda: machine)
    figures, page = tmp_path / speed.FIGURES, tmp_path / speed.PAGE
    for file in (figures, page):
        file.parent.mkdir(parents=True)
    rows = [{"samples": 10, "headline": 1.0, "all_metrics": 2.0, "loop": 3.0}]
    stored = {"machine": {**machine, "images": "Kvasir"}, "when": {"scoring": {"date": "d"}}, "scoring": rows}
    figures.write_text(json.dumps(stored))
    page.write_text(MARKED)
    before = figures.read_text(), page.read_text()
    (tmp_path / speed.README).write_text("no marks")
    monkeypatch.setattr(speed, "find_folder", lambda _: tmp_path)
    speed.main(arguments, root=tmp_path)
    if not published:
        assert (figures.read_text(), page.read_text()) == before
        assert Path("elsewhere.json").exists() == ("elsewhere.json" in arguments)
        return
    assert "0.20 s more" in page.read_text()
    assert "Scoring" in page.read_text()
    assert json.loads(figures.read_text())["scoring"] == rows


ABOUT = {"machine": {"cpu": "a", "platform": "2"}, "budget": "6GB", "epochs": 2}


def test_a_size_measured_again_replaces_its_row_alone() -> None:
    found = scale.join({"images": 10}, {"rows": [{"images": 100}, {"images": 10, "old": True}]})
    assert found == [{"images": 10}, {"images": 100}]
    assert scale.join({"images": 10}, {}) == [{"images": 10}]


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({}, ""),
        ({"machine": {"cpu": "b"}}, "another machine"),
        ({"budget": "1GB"}, "budget"),
        ({"epochs": 3}, "epochs"),
    ],
)
def test_sizes_measured_in_another_way_are_not_thrown_away(
    tmp_path: Path, change: dict[str, Any], refused: str
) -> None:
    file = tmp_path / "scale.json"
    assert scale.find_difference(file, ABOUT) == ""
    file.write_text(json.dumps({**ABOUT, "machine": {"cpu": "a", "platform": "1"}, **change}))
    problem = scale.find_difference(file, ABOUT)
    assert refused in problem
    assert bool(problem) == bool(refused)


@pytest.mark.parametrize(
    ("arguments", "published", "kept"),
    [([], True, False), (["--sizes", "1"], False, False), (["--output", "elsewhere.json"], False, True)],
)
def test_only_the_usual_sizes_of_stores_are_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], published: bool, kept: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stores, "measure", lambda *_: [{"command": "import", "runs": 10, "wall": 1.0, "cpu": 1.0}])
    monkeypatch.setattr(stores, "OUTPUT", tmp_path / "stores.json")
    monkeypatch.setattr(stores, "PAGE", tmp_path / "speed.md")
    stores.PAGE.write_text("<!-- stores: begin -->\nold\n<!-- stores: end -->\n")
    stores.main(arguments)
    assert stores.OUTPUT.exists() == published
    assert ("old" not in stores.PAGE.read_text()) == published
    assert Path("elsewhere.json").exists() == kept


def test_the_model_is_checked_by_runs_that_it_was_not_taken_from() -> None:
    """Twice as many processor seconds as the model says at 1,000 images; a directory of 40 MB and 1 kB per image."""

    def row(images: int, slower: float) -> dict[str, Any]:
        counts = {"labelled": images // 4, "unlabelled": images // 2, "test": images // 4}
        seconds = dict.fromkeys(growth.UNITS, slower * images / 1000)
        work = growth.find_work({"images": images, "counts": counts, "views": "bank:2"}, 1)
        assert work.predicted == images * 3 // 4
        disk = growth.predict_bytes(work, "bank:2") | {growth.DIRECTORY: 4 * 10**7 + 1000 * work.predicted}
        return {"images": images, "counts": counts, "views": "bank:2", "cpu_seconds": seconds, "disk_bytes": disk}

    text = growth.check([row(1000, 2.0), row(10_000, 1.0), row(100_000, 1.0)], 1)
    assert "10,000: model" not in text
    assert "| all of these |  | 8, 16, 2.00 | 800, 800, 1.00 |" in text
    assert "| the run's directory |  | 115, 115, 1.00 |" in text
