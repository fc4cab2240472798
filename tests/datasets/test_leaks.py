"""Test images that are labelled images as well: found as data, named by the run and the audit, left out on request."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gcdbench.datasets.integrity import find_leak
from gcdbench.datasets.integrity.dataset_findings import find_faults
from gcdbench.splits.protocol import Protocol
from tests.data.conftest import noise_image
from tests.data.loading import opened


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["labelled", "unlabelled", "test", ""])), max_size=12)
)
def test_leaks_are_those_of_a_double_loop(images: list[tuple[str, str]]) -> None:
    roles = np.array([role for _, role in images], dtype="<U10")
    leak = find_leak([sha for sha, _ in images], roles)
    expected = {}
    for i, (sha, role) in enumerate(images):
        for j, (other, other_role) in enumerate(images):
            if role == "test" and other_role == "labelled" and sha == other:
                expected.setdefault(i, j)
    assert dict(zip(leak.ids.tolist(), leak.twins.tolist(), strict=True)) == expected
    tested = np.flatnonzero(roles == "test")
    assert leak.leave_out(tested).tolist() == [i for i in tested.tolist() if i not in expected]


def test_nothing_is_said_where_nothing_leaks() -> None:
    leak = find_leak(["a", "b"], np.array(["labelled", "test"]))
    assert len(leak) == 0
    assert leak.sentence(["x", "y"]) == ""


def test_a_run_and_the_audit_name_them(cli, tmp_path: Path) -> None:
    root = tmp_path / "set"
    for number, (part, label, count) in enumerate(
        (("train", "a", 6), ("train", "b", 6), ("test", "a", 3), ("test", "b", 3))
    ):
        (root / part / label).mkdir(parents=True)
        for index in range(count):
            noise_image(100 * number + index).save(root / part / label / f"{index}.png")
    for index in range(6):  # every training image of the old class, so that the labelled ones are among them
        shutil.copy(root / "train" / "a" / f"{index}.png", root / "test" / "a" / f"copy{index}.png")
    report = find_faults(opened(f"folder:{root}"), Protocol(name="half"), workers=1)
    [finding] = [finding for finding in report.findings if finding.kind == "test-as-labelled"]
    assert len(finding.groups) == 3
    for test, labelled in finding.groups:
        assert test == labelled.replace("train/a/", "test/a/copy")
    result = cli("run", "-m", "kmeans", "-d", f"folder:{root}", "--preset", "smoke", "--set", "image_size=16")
    assert result.exit_code == 0, result.output
    assert "3 test images are byte for byte copies of labelled ones: test/a/copy" in result.stderr
    command = ("run", "-m", "kmeans", "-d", f"folder:{root}", "--preset", "smoke", "--set", "image_size=16", "--quiet")
    again = cli(*command, "--set", "protocol.test_copies=left-out")
    assert again.exit_code == 0, again.output
    assert "left out of the score on the test part" in again.stderr  # quiet is about progress, not about this
    assert "test part (n = 12," in result.stdout
    assert "test part (n = 9," in again.stdout
