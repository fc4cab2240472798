"""The two halves of a network that was cut (see :mod:`gcdbench.models.cutting`), each a module of its own."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from gcdbench.models.cutting import Call


class CannotBeCutError(ValueError):
    """Why a network cannot be cut, as the second half of a sentence about it."""


class Reached(Exception):
    """The first half is over; ``value`` is what the second one begins with."""

    def __init__(self, value: Tensor) -> None:
        super().__init__("the cut is reached")
        self.value = value


class Stop(nn.Module):
    """Stands where the second half begins."""

    def forward(self, value: Tensor, *extras: Any, **options: Any) -> Tensor:
        if torch.compiler.is_exporting():  # which follows modules in and out, and loses its place where one raises
            return value
        raise Reached(value)


class Passed(nn.Module):
    """Stands for a module of the second half: reached in an export alone, where it changes nothing."""

    def forward(self, value: Tensor, *extras: Any, **options: Any) -> Tensor:
        return value


class FirstHalf(nn.Module):
    """A network up to a cut, without the parameters after it: images to what the second half begins with."""

    def __init__(self, network: nn.Module, run: str, chain: Sequence[Call]) -> None:
        super().__init__()
        self.run = run
        self.network = copy.deepcopy(network)
        self.network.set_submodule(chain[0].path, Stop())
        for call in chain[1:]:
            self.network.set_submodule(call.path, Passed())

    def forward(self, images: Tensor) -> Tensor:
        try:
            out: Tensor = getattr(self.network, self.run)(images)
        except Reached as reached:
            return reached.value
        if torch.compiler.is_exporting():
            return out
        raise CannotBeCutError("does not reach its last stage with every image")


class SecondHalf(nn.Module):
    """The modules of a chain one after the other, under the names they have in the network."""

    def __init__(self, chain: Sequence[Call]) -> None:
        super().__init__()
        self._steps = [(call.path, self._keep(call.extras), self._keep(call.options)) for call in chain]
        for call in chain:
            parent: nn.Module = self
            *outer, name = call.path.split(".")
            for part in outer:
                if part not in dict(parent.named_children()):
                    parent.add_module(part, nn.Module())
                parent = parent.get_submodule(part)
            parent.add_module(name, call.module)

    def _keep(self, value: Any) -> Any:
        """What a module was given in addition to its input; tensors become buffers, which move with the modules."""
        if isinstance(value, Tensor):
            name = f"table_{len(dict(self.named_buffers()))}"
            self.register_buffer(name, value.clone(), persistent=False)
            return _Buffer(name)
        if isinstance(value, list | tuple):
            return type(value)(self._keep(part) for part in value)
        if isinstance(value, dict):
            return {key: self._keep(part) for key, part in value.items()}
        return value

    def _give(self, value: Any) -> Any:
        if isinstance(value, _Buffer):
            return self.get_buffer(value.name)
        if isinstance(value, list | tuple):
            return type(value)(self._give(part) for part in value)
        if isinstance(value, dict):
            return {key: self._give(part) for key, part in value.items()}
        return value

    def forward(self, value: Tensor) -> Tensor:
        for path, extras, options in self._steps:
            value = self.get_submodule(path)(value, *self._give(extras), **self._give(options))
        return value


@dataclass(frozen=True)
class _Buffer:
    """Stands for a tensor that is kept as a buffer of this name."""

    name: str
