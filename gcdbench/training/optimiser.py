"""SGD as SimGCD's scripts set it up.

Written out here because making any optimiser of torch imports its compiler, two seconds in every process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from gcdbench.training.config import TrainingConfig


class SGD:
    """Stochastic gradient descent with momentum, torch's formula: v ← μ v + g + λ w, w ← w − η v.

    A parameter without a gradient is left alone. ``lr`` may be set before each step.
    """

    def __init__(self, groups: Iterable[tuple[list[nn.Parameter], float]], *, lr: float, momentum: float) -> None:
        """groups: parameters with their weight decay."""
        self.groups = [(parameters, decay) for parameters, decay in groups if parameters]
        self.lr = lr
        self.momentum = momentum
        self._velocity: dict[nn.Parameter, Tensor] = {}

    @property
    def parameters(self) -> list[nn.Parameter]:
        """All of them, in a fixed order."""
        return [parameter for parameters, _ in self.groups for parameter in parameters]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter that has a gradient."""
        for parameters, decay in self.groups:
            moving: list[Tensor] = []
            gradients: list[Tensor] = []
            velocities: list[Tensor] = []
            for parameter in parameters:
                if parameter.grad is not None:
                    if parameter not in self._velocity:
                        self._velocity[parameter] = torch.zeros_like(parameter)
                    moving.append(parameter)
                    gradients.append(parameter.grad)
                    velocities.append(self._velocity[parameter])
            if moving:
                torch._foreach_mul_(velocities, self.momentum)
                torch._foreach_add_(velocities, gradients)
                if decay:
                    torch._foreach_add_(velocities, moving, alpha=decay)
                torch._foreach_add_(moving, velocities, alpha=-self.lr)

    def state_dict(self) -> dict[str, Any]:
        """Velocities by the parameter's place in the order, None where it never moved."""
        return {"velocity": [self._velocity.get(p) for p in self.parameters]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of :meth:`state_dict`."""
        pairs = zip(self.parameters, state["velocity"], strict=True)
        self._velocity = {p: v.to(p.device) for p, v in pairs if v is not None}


def make_optimiser(modules: Iterable[nn.Module], config: TrainingConfig) -> SGD:
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
    return SGD([(decayed, config.weight_decay), (exempt, 0.0)], lr=config.lr, momentum=config.momentum)
