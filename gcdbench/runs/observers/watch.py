"""The observers that a user asked for in one run: made, told, and left out once they fail."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gcdbench.core.errors import ConfigError
from gcdbench.plugins.manager import PluginManager
from gcdbench.plugins.specs import ObserverSpec

HOOK_PREFIX = "gcdbench_"


def require_observers(names: Sequence[str], manager: PluginManager) -> None:
    """Refuse, before anything begins, an observer that does not exist or whose packages are not installed."""
    for name in names:
        spec: ObserverSpec = manager.get("observers", name)
        missing = [module for module in spec.requires if importlib.util.find_spec(module) is None]
        if missing:
            cure = f"'gcdbench[{spec.extra}]'" if spec.extra else " ".join(missing)
            raise ConfigError(
                f"The observer '{spec.name}' needs {', '.join(missing)}, which is not installed.",
                hint=f"pip install {cure}",
            )


class Watch:
    """All observers of one run. What they raise is returned, never raised: an observer may not stop a run."""

    def __init__(self, names: Sequence[str], manager: PluginManager, directory: Path) -> None:
        self._manager = manager
        self._failures: list[str] = []
        self._observers: dict[str, Any] = {}
        for name in dict.fromkeys(names):
            try:
                self._observers[name] = manager.get("observers", name).load()(directory)
            except Exception as error:  # a plugin may raise anything
                self._failures.append(f"observer {name}: {manager.explain(error)}")

    def notify(self, hook: str, **arguments: Any) -> list[str]:
        """Tell every observer what the hook of this name tells plugins; one that raises is told nothing more."""
        moment = hook.removeprefix(HOOK_PREFIX)
        failures, self._failures = self._failures, []
        for name, observer in list(self._observers.items()):
            try:
                getattr(observer, moment)(**arguments)
            except Exception as error:  # a plugin may raise anything
                del self._observers[name]
                failures.append(f"observer {name}: {moment} raised {self._manager.explain(error)}")
        return failures
