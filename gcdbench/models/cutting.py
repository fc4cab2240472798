"""Cut any network in two: what happens before its last stage or block, and what happens from there on.

Nothing is assumed of a network but that its modules are called: it is run once on a probe image while every call is
written down, and the calls that lead to the result, each on exactly what the one before it gave, are followed
backwards. Where plain code stands between two modules this chain ends, so a cut is after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

OCTAVE = 2.5
"""A module that makes a map's side smaller by more than this holds several stages, or makes patches of the image."""

STEM_SHARE = 0.02
"""Where less than this share of the parameters is before the last change of size, all stages have one size."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a module; calls within it have their ``begin`` and ``end`` between its own.

    given, result: first argument and result; extras, options: further arguments.
    versions: how often input and result had been changed in place.
    """

    path: str
    module: nn.Module
    given: Any
    extras: tuple[Any, ...]
    options: dict[str, Any]
    result: Any
    begin: int
    end: int
    versions: tuple[int, int]

    @property
    def bound_to_size(self) -> bool:
        """Whether it was given something that may depend on the size of the image: a table, or numbers."""
        said = (*self.extras, *self.options.values())
        return any(not (value is None or isinstance(value, bool | str)) for value in said)

    @property
    def shrinks(self) -> float:
        """How much smaller the side of the map becomes."""
        return math.sqrt(cells(self.given) / cells(self.result))


@dataclass
class _Recorder:
    """Writes down calls in the order in which they end."""

    calls: list[Call] = field(default_factory=list)
    _clock: int = 0
    _open: list[tuple[int, int]] = field(default_factory=list)

    def begin(self, given: Any) -> None:
        self._clock += 1
        self._open.append((self._clock, _version(given)))

    def end(self, path: str, module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any], made: Any) -> None:
        self._clock += 1
        begin, version = self._open.pop()
        given, *extras = arguments or (None,)
        self.calls.append(
            Call(
                path=path,
                module=module,
                given=given,
                extras=tuple(extras),
                options=dict(options),
                result=made,
                begin=begin,
                end=self._clock,
                versions=(version, _version(made)),
            )
        )


def _version(value: Any) -> int:
    return value._version if isinstance(value, Tensor) else -1


@contextmanager
def _recording(network: nn.Module) -> Iterator[_Recorder]:
    recorder = _Recorder()
    handles: list[Any] = []
    for path, module in network.named_modules():
        if path:

            def before(module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
                recorder.begin(arguments[0] if arguments else None)

            def after(*call: Any, path: str = path) -> None:
                recorder.end(path, *call)

            handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
            handles.append(module.register_forward_hook(after, with_kwargs=True))
    try:
        yield recorder
    finally:
        for handle in handles:
            handle.remove()


def record(network: nn.Module, run: Callable[[Tensor], Any], image: Tensor) -> tuple[list[Call], Any]:
    """Every call of a part of ``network`` while ``run(image)`` computes, and its result."""
    # Not in inference mode: there tensors do not count their changes.
    with _recording(network) as recorder, torch.no_grad():
        result = run(image)
    return recorder.calls, result


def unbroken(calls: Sequence[Call], result: Tensor, *, within: Call | None = None) -> list[Call]:
    """The last calls, of the largest modules, each of which got exactly what the one before it gave.

    The last of them gave ``result``. ``within`` looks at what led to the result of one call, inside it.
    """
    inside = [call for call in calls if within is None or within.begin < call.begin < call.end < within.end]
    chain: list[Call] = []
    wanted, version, limit = result, _version(result) if within is None else within.versions[1], math.inf
    while True:
        fitting = [
            call
            for call in inside
            if call.result is wanted and call.versions[1] == version and call.end < limit
            if isinstance(call.given, Tensor)
        ]
        if not fitting:
            return chain
        chosen = max(fitting, key=lambda call: call.end)
        chain.insert(0, chosen)
        wanted, version, limit = chosen.given, chosen.versions[0], chosen.begin


def cells(value: Tensor) -> int:
    """Cells of the map, or tokens, that a tensor of one image holds; a map is square."""
    if value.ndim == 3:
        return value.shape[1]
    first, second, third = value.shape[1:]
    return second * third if second == third else first * second


def last_stage(network: nn.Module, run: Callable[[Tensor], Any], image: Tensor) -> tuple[Any, list[Call]]:
    """What ``run(image)`` gives, and the calls from the beginning of the last stage to it; none where it has no end.

    Where maps become smaller on the way, the last stage begins with the call that makes them as small as the result;
    where they do not, as in a transformer, it is the last of a row of blocks and what follows it.
    """
    calls, result = record(network, run, image)
    if not isinstance(result, Tensor):
        return result, []
    smaller, same = _size_changes(calls, result)
    if smaller and _weights(call.module for call in smaller) < (1 - STEM_SHARE) * _weights([network]):
        return result, smaller
    return result, _last_block(calls, smaller or same)


def _weights(modules: Iterable[nn.Module]) -> int:
    return sum(parameter.numel() for module in modules for parameter in module.parameters())


def _size_changes(calls: Sequence[Call], result: Tensor) -> tuple[list[Call], list[Call]]:
    """The calls from the last change of size on, where there is one; and all that could be followed."""
    chain = unbroken(calls, result)
    tail: list[Call] = []
    while chain:
        call = chain.pop()
        if call.given.ndim not in (3, 4) or call.result.ndim not in (3, 4):
            break
        if call.shrinks > OCTAVE:
            inner = unbroken(calls, call.result, within=call)
            if not inner:
                break
            chain = inner  # what came before it is of no interest: the cut is within
            continue
        tail.insert(0, call)
        if call.shrinks > 1.2 and learns(tail):
            return tail, tail
    return [], tail


def _last_block(calls: Sequence[Call], chain: Sequence[Call]) -> list[Call]:
    """The part of a chain that begins with the last of several modules of one kind in a row."""
    for number in reversed(range(len(chain))):
        call = chain[number]
        inner = unbroken(calls, call.result, within=call)
        kinds = [type(part.module) for part in inner]
        if len(inner) > 1 and kinds.count(kinds[-1]) > 1 and learns(inner[-1:]):
            return [inner[-1], *chain[number + 1 :]]
        parent = call.path.rpartition(".")[0]
        before = [part for part in chain[:number] if part.path.rpartition(".")[0] == parent]
        if parent and learns([call]) and any(type(part.module) is type(call.module) for part in before):
            return list(chain[number:])
        if len(inner) == 1 or (inner and inner[0].given is call.given and not learns([call])):
            return _last_block(calls, [*inner, *chain[number + 1 :]])
    return list(chain) if learns(chain) else []


def learns(chain: Sequence[Call]) -> bool:
    """Whether there is more to train in these modules than scales and shifts."""
    return any(parameter.ndim > 1 for call in chain for parameter in call.module.parameters())
