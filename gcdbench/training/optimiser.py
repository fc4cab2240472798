"""SGD as SimGCD's scripts set it up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from gcdbench.training.config import TrainingConfig


def make_optimiser(modules: Iterable[nn.Module], config: TrainingConfig) -> torch.optim.SGD:
    """SGD with momentum; biases and 1-d parameters (BatchNorm, scales) are exempt from weight decay."""
    decayed: list[nn.Parameter] = []
    exempt: list[nn.Parameter] = []
    seen: set[int] = set()
    for module in modules:
        for name, parameter in module.named_parameters():
            if not parameter.requires_grad or id(parameter) in seen:
                continue
            seen.add(id(parameter))
            (exempt if parameter.ndim <= 1 or name.endswith("bias") else decayed).append(parameter)
    groups: list[dict[str, Any]] = [{"params": decayed}, {"params": exempt, "weight_decay": 0.0}]
    return torch.optim.SGD(
        [group for group in groups if group["params"]],
        lr=config.lr,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
    )


def set_lr(optimiser: torch.optim.Optimizer, lr: float) -> None:
    """Set the rate of every group."""
    for group in optimiser.param_groups:
        group["lr"] = lr
