"""An executor from its name and the options it was given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gcdbench.core.config import apply_overrides
from gcdbench.core.errors import ConfigError
from gcdbench.plugins.specs import ExecutorSpec, load_attribute


def make_executor(spec: ExecutorSpec, options: Mapping[str, object]) -> Any:
    """The executor with these options of its config; one without a config takes none."""
    if spec.config is None:
        if options:
            raise ConfigError(
                f"The executor '{spec.name}' has no option '{next(iter(options))}'.",
                hint="Leave --executor-set out, or name another --executor.",
            )
        return spec.load()()
    return spec.load()(apply_overrides(load_attribute(spec.config)(), options))


def require_preset(spec: ExecutorSpec, preset: str | None) -> None:
    """A preset that nobody named may depend on the machine: jobs that leave it must not."""
    if spec.remote and preset is None:
        raise ConfigError(
            f"The runs may happen on another machine (executor '{spec.name}'), so the preset must be named.",
            hint="Add --preset, for example --preset laptop.",
        )
