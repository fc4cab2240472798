"""The observers that come with gcdbench."""

from __future__ import annotations

from collections.abc import Iterable

from gcdbench.plugins.hookspecs import hookimpl
from gcdbench.plugins.specs import ObserverSpec


@hookimpl
def gcdbench_observers() -> Iterable[ObserverSpec]:
    """TensorBoard."""
    return [
        ObserverSpec(
            name="tensorboard",
            factory="gcdbench.runs.observers.tensorboard:TensorBoard",
            summary="losses, learning rate, speed and scores; tensorboard:<folder> collects runs there",
            requires=("tensorboard",),
            extra="tensorboard",
        ),
    ]
