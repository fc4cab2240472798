"""What a campaign stores of its trials."""

from __future__ import annotations

import pytest

trial = pytest.importorskip("benchmarks.faults.trial", reason="runs from the repository's root")


@pytest.mark.parametrize(
    ("detail", "stored"),
    [
        ("remove them in /home/me/tmp/case-7/", "remove them in …/"),
        ("remove them in /home/me/tm", "remove them in …/tm"),  # the message was cut here
        ("refused: '/home/me/list.csv' is empty", "refused: '…/list.csv' is empty"),
        ("cannot be read: /proc/self/mem", "cannot be read: /proc/self/mem"),
        ("names /dev/zero", "names /dev/zero"),
        ("class0/bad.png is truncated", "class0/bad.png is truncated"),
        ("…/bad.png", "…/bad.png"),
    ],
)
def test_no_folder_of_the_machine_is_stored(detail: str, stored: str) -> None:
    assert trial.without_places(detail) == stored
