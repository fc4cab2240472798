"""Accepted data issues are counted and marked; folders of one name are told apart by their images."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.run_marks import ISSUE_MARK, issue_notes, told_apart
from gcdbench.reporting.tables.plain import plain_table
from gcdbench.runs.packed_scores import pack_scores
from gcdbench.runs.record import SetScores
from gcdbench.runs.run_entry import RunEntry, Settings

SCORES = {"all": 1.0, "old": 1.0, "new": 1.0}


def entry(images: str = "a", *, size: int = 64, issues: tuple[str, ...] = (), digest: str = "") -> RunEntry:
    listed = ", ".join(f'"{issue}"' for issue in issues)
    text = (
        f'{{"config": {{}}, "images": "{images}", "manifest_sha256": "", "method_version": "", '
        f'"protocol": {{"k_policy": "known"}}, "accepted_data_issues": [{listed}]}}'
    )
    return RunEntry(
        place=str(Path("runs") / images),
        run_id=images,
        status="done",
        dataset="folder-x",
        method="kmeans",
        image_size=size,
        common=Settings(digest=digest or f"{images}{size}", text=text),
        scored=pack_scores({"transductive": SetScores(n=3, old_share=0.5, k_old=1, scores=SCORES)}),
    )


@pytest.mark.parametrize("count", [1, 2, 3, 5000])
def test_many_issues_are_one_sentence(count: int) -> None:
    [note] = issue_notes([entry(issues=tuple(f"issue {i}" for i in range(count)))])
    assert f"{count} known data issue" in note
    assert note.count("issue 0") == 1
    assert "issue 2" not in note
    assert ("more" in note) == (count > 2)


def test_folders_of_one_name_have_two_names() -> None:
    names = told_apart([entry("a"), entry("b")])
    assert len(set(names.values())) == 2
    assert all(name.startswith("folder-x#") for name in names.values())


def test_one_folder_at_two_sizes_has_one_name() -> None:
    assert set(told_apart([entry("a", size=64), entry("b", size=128)]).values()) == {"folder-x"}


def test_a_table_shows_both() -> None:
    table = plain_table([entry("a", issues=("odd",)), entry("b")], PluginManager(points=[]))
    marked = [row.labels[0] for row in table.rows if row.labels[0].endswith(ISSUE_MARK)]
    assert len(marked) == 1
    assert len({row.labels[0] for row in table.rows}) == 2
    assert any(note.startswith(ISSUE_MARK) for note in table.notes)
