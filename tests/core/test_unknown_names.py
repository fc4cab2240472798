"""The name that is suggested for one that nobody knows."""

from __future__ import annotations

import pytest

from gcdbench.core.errors import UnknownName, nearest
from gcdbench.plugins.manager import get_manager

KNOWN = ["cifar10", "cifar100", "csv", "cub-200-2011", "fgvc-aircraft", "kvasir", "kvasir-v2", "stanford-cars"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("cars", "stanford-cars"),  # spelt alike is 'csv'
        ("cub", "cub-200-2011"),  # nothing is spelt alike
        ("CIFAR100", "cifar100"),
        ("cifar", "cifar10"),  # of several the shortest
        ("aircraft", "fgvc-aircraft"),
        ("kvasri", "kvasir"),
        ("kvasir-v3", "kvasir-v2"),
        ("cv", "csv"),  # too short to be looked for inside of others
        ("birds", None),
        ("", None),
    ],
)
def test_what_begins_with_a_name_or_holds_it_comes_before_what_is_spelt_alike(name: str, meant: str | None) -> None:
    assert nearest(name, KNOWN) == meant
    said = str(UnknownName("dataset", name, KNOWN))
    assert (f"did you mean '{meant}'" in said) if meant else ("known: cifar10, cifar100" in said)


def test_the_registered_datasets_are_found_by_their_short_names() -> None:
    for name, meant in (("cars", "stanford-cars"), ("cub", "cub-200-2011"), ("herbarium", "herbarium-19")):
        with pytest.raises(UnknownName, match=f"did you mean '{meant}'"):
            get_manager().get("datasets", name)
