"""The optimiser does what torch's does, step by step, also when it is saved and restored."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn

from gcdbench.training.config import TrainingConfig
from gcdbench.training.optimiser import SGD, make_optimiser

SHAPES = ((4, 3), (3,), (2, 2, 1, 1))


def parameters() -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(*shape, generator=generator)) for shape in SHAPES]


def set_gradients(owned: list[nn.Parameter], step: int) -> None:
    generator = torch.Generator().manual_seed(step + 1)
    for index, parameter in enumerate(owned):
        gradient = torch.randn(parameter.shape, generator=generator)
        # One parameter gets its first gradient late, and loses it in between.
        parameter.grad = None if index == 2 and step in (0, 3) else gradient


@pytest.mark.parametrize("momentum", [0.9, 0.0])
@pytest.mark.parametrize("restored_at", [None, 1, 4])
def test_it_is_torch_s(momentum: float, restored_at: int | None) -> None:
    ours, theirs = parameters(), parameters()
    optimiser = SGD([(ours[:1], 0.1), (ours[1:], 0.0)], lr=0.5, momentum=momentum)
    reference = torch.optim.SGD(
        [{"params": theirs[:1], "weight_decay": 0.1}, {"params": theirs[1:]}], lr=0.5, momentum=momentum
    )
    for step in range(6):
        optimiser.lr = 0.5 / (step + 1)
        for group in reference.param_groups:
            group["lr"] = 0.5 / (step + 1)
        if step == restored_at:
            state = optimiser.state_dict()
            optimiser = SGD([(ours[:1], 0.1), (ours[1:], 0.0)], lr=optimiser.lr, momentum=momentum)
            optimiser.load_state_dict(state)
        optimiser.zero_grad()
        assert all(parameter.grad is None for parameter in ours)
        set_gradients(ours, step)
        set_gradients(theirs, step)
        optimiser.step()
        reference.step()
        for mine, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-7)


def test_a_shared_parameter_moves_once() -> None:
    layer = nn.Linear(2, 2, bias=False)
    optimiser = make_optimiser([layer, nn.Sequential(layer)], TrainingConfig())
    assert len(optimiser.parameters) == 1


def test_no_compiler_is_imported_for_it() -> None:
    code = """
import sys
from torch import nn
from gcdbench.training.optimiser import make_optimiser
from gcdbench.training.config import TrainingConfig
make_optimiser([nn.Linear(2, 2)], TrainingConfig())
sys.exit("torch._dynamo" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})
