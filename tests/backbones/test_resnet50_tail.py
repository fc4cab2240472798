"""The CPU path of ResNet-50's trained stage against torchvision's modules."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from gcdbench.models.resnet50 import BottleneckTail, load_resnet50


def random_tensor(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def tail() -> BottleneckTail:
    """In float64, with BatchNorm parameters that are not trivial."""
    made = load_resnet50("none").tail.double()
    assert isinstance(made, BottleneckTail)
    generator = torch.Generator().manual_seed(3)
    for module in made.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5, generator=generator)
            nn.init.normal_(module.bias, generator=generator)
            nn.init.normal_(module.running_mean, generator=generator)
            nn.init.uniform_(module.running_var, 0.5, 2.0, generator=generator)
    return made


@pytest.mark.parametrize("size", [(4, 4), (5, 7)])
@pytest.mark.parametrize("memory", [torch.channels_last, torch.contiguous_format])
def test_training_step_equals_torchvision(
    tail: BottleneckTail, size: tuple[int, int], memory: torch.memory_format
) -> None:
    """Map, input gradient, parameter gradients and running statistics agree."""
    plain, fast = copy.deepcopy(tail), copy.deepcopy(tail)
    outcomes = []
    for one, forward in ((plain, plain.forward_plain), (fast, fast.forward_winograd)):
        one.train()
        x = random_tensor(3, 1024, *size).contiguous(memory_format=memory).requires_grad_()
        y = forward(x)
        y.backward(random_tensor(*y.shape, seed=2))
        outcomes.append((y.detach(), x.grad))
    torch.testing.assert_close(outcomes[0], outcomes[1], rtol=1e-8, atol=1e-8)
    for name, parameter in plain.named_parameters():
        torch.testing.assert_close(fast.get_parameter(name).grad, parameter.grad, rtol=1e-6, atol=1e-8)
    for name, buffer in plain.named_buffers():
        torch.testing.assert_close(fast.get_buffer(name), buffer)


def test_evaluation_equals_torchvision_and_leaves_statistics_alone(tail: BottleneckTail) -> None:
    made = copy.deepcopy(tail).eval()
    before = copy.deepcopy(made.state_dict())
    x = random_tensor(2, 1024, 8, 8)
    with torch.no_grad():
        torch.testing.assert_close(made(x), made.forward_plain(x), rtol=1e-8, atol=1e-8)
    for name, value in made.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_small_maps_take_the_replaced_convolutions(tail: BottleneckTail, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the tests above would compare a path nobody takes."""
    taken: list[str] = []
    made = copy.deepcopy(tail).eval()
    for name in ("forward_plain", "forward_winograd"):
        monkeypatch.setattr(made, name, lambda x, name=name: taken.append(name))
    made(torch.zeros(1, 1024, 14, 14))
    made(torch.zeros(1, 1024, 28, 28))
    assert taken == ["forward_winograd", "forward_plain"]


def test_two_steps_are_bit_identical(tail: BottleneckTail) -> None:
    gradients = []
    for _ in range(2):
        made = copy.deepcopy(tail).float().train()
        made(random_tensor(3, 1024, 8, 8).float()).square().mean().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in made.parameters() if p.grad is not None]))
    assert torch.equal(gradients[0], gradients[1])


def test_names_are_torchvisions(tail: BottleneckTail) -> None:
    """A saved tail can be read by anybody."""
    assert {"layer4.0.downsample.1.running_var", "layer4.2.conv3.weight"} <= set(tail.state_dict())
