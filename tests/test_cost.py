"""Costs against a count by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gcdbench.core.errors import GCDBenchError
from gcdbench.models.backbone import Backbone
from gcdbench.models.cost import InferencePath, count_flops, count_parameters, measure_cost, require_backbone
from gcdbench.models.heads import Prototypes

SIZE, CHANNELS, K = 16, 12, 5


class TwoLayers(Backbone):
    """Two convolutions of stride 2 with bias, the second followed by BatchNorm."""

    name, weights_sha256, channels, stride = "two-layers", "none", CHANNELS, 4

    def __init__(self) -> None:
        super().__init__()
        self.prefix = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.tail = nn.Sequential(nn.Conv2d(8, CHANNELS, 3, stride=2, padding=1), nn.BatchNorm2d(CHANNELS))


def tiny_path() -> InferencePath:
    return InferencePath(TwoLayers(), Prototypes(CHANNELS, K, torch.Generator().manual_seed(0)))


def test_parameters_and_flops_are_those_of_the_layers() -> None:
    path = tiny_path()
    prefix = 8 * 3 * 9 + 8
    tail = CHANNELS * 8 * 9 + CHANNELS + 2 * CHANNELS
    assert count_parameters(path) == prefix + tail + K * CHANNELS
    # Two convolutions of stride 2 on 16 px, then the prototypes; an addition and a multiplication are two.
    first = 2 * (8 * 8) * 8 * 3 * 9
    second = 2 * (4 * 4) * CHANNELS * 8 * 9
    assert count_flops(path, SIZE) == first + second + 2 * K * CHANNELS
    cost = measure_cost(path, SIZE, batch=3, repeats=2)
    assert cost.parameters == prefix + tail + K * CHANNELS
    assert cost.trained_parameters == tail + K * CHANNELS
    assert cost.flops == first + second + 2 * K * CHANNELS
    buffers = 2 * CHANNELS * 4 + 8  # BatchNorm's statistics and its counter of batches
    assert cost.weights_mb == pytest.approx(((prefix + tail + K * CHANNELS) * 4 + buffers) / 1e6)


def test_activations_hold_at_least_the_largest_layers_output() -> None:
    cost = measure_cost(tiny_path(), SIZE, repeats=1)
    assert cost.activations_mb is not None
    largest = 8 * 8 * 8 * 4 / 1e6
    assert largest <= cost.activations_mb <= 20 * largest
    doubled = measure_cost(tiny_path(), 2 * SIZE, repeats=1)
    assert doubled.activations_mb is not None
    assert doubled.activations_mb == pytest.approx(4 * cost.activations_mb, rel=0.3)


def test_resnet18_has_its_published_size() -> None:
    """1.81 G multiply-adds and 11.18 million weights without the classifier, as published for 224 px."""
    from gcdbench.plugins.manager import get_manager

    path = InferencePath(get_manager().get("backbones", "resnet18").load()("none"), None)
    assert count_flops(path, 224) / 2e9 == pytest.approx(1.81, abs=0.01)
    assert count_parameters(path) / 1e6 == pytest.approx(11.18, abs=0.01)


def test_a_feature_without_prototypes_is_a_path_too() -> None:
    path = InferencePath(TwoLayers(), None)
    assert path(torch.zeros(2, 3, SIZE, SIZE)).shape == (2, CHANNELS)
    assert measure_cost(path, SIZE, repeats=1).trained_parameters == count_parameters(path.backbone.tail)
    assert measure_cost(path, SIZE, repeats=1, trained=False).trained_parameters == 0


def test_without_a_network_there_is_nothing_to_measure() -> None:
    assert require_backbone("resnet18") == "resnet18"
    with pytest.raises(GCDBenchError, match="no network"):
        require_backbone("none")
