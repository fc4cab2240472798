"""Several modules in one flat dictionary of tensors, each under its own prefix."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

State = dict[str, Tensor]


def merge_states(modules: Mapping[str, nn.Module]) -> State:
    """``{"head": module}`` -> ``{"head.weight": tensor, ...}``."""
    return {
        f"{prefix}.{name}": value for prefix, module in modules.items() for name, value in module.state_dict().items()
    }


def load_states(modules: Mapping[str, nn.Module], state: Mapping[str, Tensor]) -> None:
    """The inverse of :func:`merge_states`; a missing or superfluous tensor of a module is an error."""
    for prefix, module in modules.items():
        start = f"{prefix}."
        module.load_state_dict({name[len(start) :]: value for name, value in state.items() if name.startswith(start)})
