"""The terms that a method returned for one step: their sum, and what to say where one of them is not finite."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from gcdbench.core.errors import TrainingError


def total_loss(terms: object, method: str) -> Tensor:
    """The sum of the terms, a scalar in float32; ``method`` is for messages."""
    if not isinstance(terms, dict):
        raise TrainingError(f"losses() of {method} returned {type(terms).__name__}, not a dictionary of terms.")
    for key, value in terms.items():
        if not isinstance(value, Tensor) or value.ndim:
            raise TrainingError(f"losses() of {method} must return scalar tensors, but '{key}' is not one.")
    if not any(value.requires_grad for value in terms.values()):
        raise TrainingError(f"losses() of {method} returned nothing that depends on the network.")
    return torch.stack([value.float() for value in terms.values()]).sum()


def not_finite(
    values: Mapping[str, float], gradient: float, *, step: int, epoch: str, kept: Path | None
) -> TrainingError:
    """The error for a step whose losses or gradient are not finite.

    epoch: as in "3 of 20". kept: the file with the state before this step, where it was written.
    """
    culprits = [f"the loss '{name}'" for name, value in values.items() if not math.isfinite(value)]
    told = ", ".join(f"{name} = {value:.6g}" for name, value in values.items())
    # No learning rate has had an effect before the first step is taken.
    rate = "try a smaller learning rate, or " if step else ""
    hint = f"{rate}look at the {'named loss' if culprits else 'losses: one has no finite gradient'}"
    if not step:
        hint += ", the weights that the run starts from, and the images of the first batch"
    if kept is not None:
        hint += f"; weights and optimiser before this step are in {kept} (running statistics have seen its batch)"
    return TrainingError(
        f"Training stopped at step {step} (epoch {epoch}): "
        f"{', '.join(culprits) or 'the gradient'} is not finite ({told}, gradient norm = {gradient:.6g}).",
        hint=hint,
    )
