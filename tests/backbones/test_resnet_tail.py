"""The CPU path of ResNet-18's trained stage against torchvision's modules."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from gcdbench.models.resnet import ResNetTail, load_resnet18
from gcdbench.models.winograd import TILE, conv3x3, make_filter


def random_tensor(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def make_tail() -> ResNetTail:
    tail = copy.deepcopy(load_resnet18("none").tail).double()
    assert isinstance(tail, ResNetTail)
    generator = torch.Generator().manual_seed(3)
    for module in tail.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5, generator=generator)
            nn.init.normal_(module.bias, generator=generator)
            nn.init.normal_(module.running_mean, generator=generator)
            nn.init.uniform_(module.running_var, 0.5, 2.0, generator=generator)
    return tail


@pytest.mark.parametrize("stride", [1, 2])
def test_filter_is_correlation(stride: int) -> None:
    """One dimension: sums of products over a sliding window, written as a loop."""
    axis = make_filter(stride)
    rng = np.random.default_rng(0)
    signal, taps = rng.normal(size=axis.window.shape[1]), rng.normal(size=3)
    expected = [sum(taps[k] * signal[stride * i + k] for k in range(3)) for i in range(TILE)]
    np.testing.assert_allclose(axis.output @ ((axis.weight @ taps) * (axis.window @ signal)), expected, atol=1e-12)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [(4, 4), (7, 7), (1, 1), (3, 8), (5, 2), (14, 8)])
def test_convolution_and_gradients_equal_torchs(size: tuple[int, int], stride: int) -> None:
    """Any map size, in double precision."""
    x = random_tensor(3, 5, *size).requires_grad_()
    weight = random_tensor(6, 5, 3, 3, seed=2).requires_grad_()
    expected = functional.conv2d(x, weight, padding=1, stride=stride)
    ours = conv3x3(x.flatten(2).permute(2, 1, 0), weight, *size, stride).permute(2, 1, 0).reshape(expected.shape)
    torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-10)
    gradient = random_tensor(*expected.shape, seed=3)
    mine = torch.autograd.grad(ours, (x, weight), gradient)
    theirs = torch.autograd.grad(expected, (x, weight), gradient)
    torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-10)


def test_float32_error_is_of_the_order_of_a_direct_convolution() -> None:
    """512 channels: relative error below 5e-6 (a direct float32 convolution has about 1e-6)."""
    x, weight = random_tensor(4, 512, 4, 4).relu(), random_tensor(64, 512, 3, 3, seed=2) / 48
    exact = functional.conv2d(x, weight, padding=1)
    ours = conv3x3(x.float().flatten(2).permute(2, 1, 0), weight.float(), 4, 4).permute(2, 1, 0).reshape(exact.shape)
    assert (ours - exact).norm() < 5e-6 * exact.norm()


@pytest.mark.parametrize("size", [(8, 8), (5, 7)])
def test_training_step_equals_torchvision(size: tuple[int, int]) -> None:
    """Map, parameter gradients and running statistics agree."""
    plain = make_tail()
    fast = copy.deepcopy(plain)
    outcomes = []
    for tail, forward in ((plain, plain.forward_plain), (fast, fast.forward_cell_major)):
        tail.train()
        x = random_tensor(5, 256, *size).requires_grad_()
        y = forward(x)
        y.backward(random_tensor(*y.shape, seed=2))
        outcomes.append((y.detach(), x.grad))
    torch.testing.assert_close(outcomes[0], outcomes[1], rtol=1e-8, atol=1e-8)
    for name, parameter in plain.named_parameters():
        torch.testing.assert_close(fast.get_parameter(name).grad, parameter.grad, rtol=1e-6, atol=1e-8)
    for name, buffer in plain.named_buffers():
        torch.testing.assert_close(fast.get_buffer(name), buffer)


def test_evaluation_equals_torchvision_and_pooling_is_the_mean() -> None:
    network = load_resnet18("none").eval()
    hidden = random_tensor(3, 256, 8, 8).float()
    with torch.no_grad():
        output = network.run_tail(hidden)
        assert isinstance(network.tail, ResNetTail)
        expected = network.tail.forward_plain(hidden)
    torch.testing.assert_close(output.map, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(output.pooled, output.map.mean(dim=(2, 3)), rtol=1e-5, atol=1e-6)


def test_two_steps_are_bit_identical() -> None:
    gradients = []
    for _ in range(2):
        tail = make_tail().float().train()
        tail(random_tensor(4, 256, 8, 8).float()).square().mean().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in tail.parameters() if p.grad is not None]))
    assert torch.equal(gradients[0], gradients[1])


def test_names_are_torchvisions() -> None:
    """A saved tail can be read by anybody."""
    names = set(load_resnet18("none").tail.state_dict())
    assert "layer4.0.downsample.1.running_var" in names
    assert "layer4.1.conv2.weight" in names
