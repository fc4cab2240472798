"""What a method is told, and the abilities it may declare."""

from __future__ import annotations

import pytest
import torch

from gcdbench.methods.kmeans import KMeans, PixelsKMeans
from gcdbench.methods.simgcd import SimGCD
from gcdbench.models.backbone import TailOutput
from gcdbench.reporting.explain.maps import named_maps
from gcdbench.training.method import HasAuxiliaryState, OffersAlternatives, SavesModel, ShowsAttention, TaskInfo


def test_the_old_way_to_the_image_size_works_for_one_release_and_says_so() -> None:
    with pytest.warns(DeprecationWarning, match=r"ctx\.image_size"):
        assert TaskInfo(k_old=2, k=4, image_size=96).image_size == 96
    assert TaskInfo(k_old=2, k=4) == TaskInfo(k_old=2, k=4, image_size=96)


@pytest.mark.parametrize(
    ("method", "abilities"),
    [
        (SimGCD, {SavesModel, HasAuxiliaryState}),
        (KMeans, {SavesModel}),
        (PixelsKMeans, set()),
    ],
)
def test_abilities_are_declared_by_having_them(method: type, abilities: set[type]) -> None:
    every = (SavesModel, HasAuxiliaryState, ShowsAttention, OffersAlternatives)
    assert {ability for ability in every if isinstance(method.__new__(method), ability)} == abilities


def test_maps_are_those_that_a_method_has() -> None:
    tail = TailOutput(map=-torch.ones(2, 3, 4, 4), pooled=torch.ones(2, 3))

    class Looks:
        def attention(self, tail: TailOutput) -> torch.Tensor | None:
            return tail.map[:, 0]

    class LooksNowhere(Looks):
        def attention(self, tail: TailOutput) -> None:
            return None

        def attention_alternatives(self, tail: TailOutput) -> dict[str, torch.Tensor]:
            return {"other": tail.map[:, 1]}

    assert list(named_maps(Looks(), tail)) == ["attention", "feature energy"]
    assert list(named_maps(LooksNowhere(), tail)) == ["feature energy", "other"]
    assert list(named_maps(None, tail)) == ["feature energy"]
    assert torch.equal(named_maps(None, tail)["feature energy"], torch.ones(2, 4, 4))
