"""Lite2's trained stage is Lite0's code with other sizes: the CPU path equals the plain modules there, too."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from gcdbench.models.lite0 import LiteTail
from gcdbench.models.lite_layouts import LITE2


def random_tensor(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_training_step_equals_plain() -> None:
    """Map, input gradient, parameter gradients and running statistics agree, in double precision."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        plain = LiteTail(LITE2).double().train()
        for module in plain.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.uniform_(module.weight, 0.5, 1.5)
                nn.init.normal_(module.bias)
    fast = copy.deepcopy(plain)
    outcomes = []
    for forward in (plain.forward_plain, fast.forward_channel_major):
        x = random_tensor(5, LITE2.cut, 7, 5).requires_grad_()
        y = forward(x)
        y.backward(random_tensor(*y.shape, seed=2))
        outcomes.append((y.detach(), x.grad))
    torch.testing.assert_close(outcomes[0], outcomes[1], rtol=1e-7, atol=1e-9)
    for name, parameter in plain.named_parameters():
        torch.testing.assert_close(fast.get_parameter(name).grad, parameter.grad, rtol=1e-6, atol=1e-8)
    for name, buffer in plain.named_buffers():
        torch.testing.assert_close(fast.get_buffer(name), buffer)
