"""Shared fixtures. Every test has a cache and a run store of its own; nothing outside a temporary folder is touched."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

os.environ.setdefault("OMP_NUM_THREADS", "1")

EXAMPLE = Path(__file__).parent / "thirdparty" / "example"


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests of a process: what is derived from images may be shared, as in real life."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _isolated(monkeypatch: pytest.MonkeyPatch, shared_cache: Path, tmp_path: Path) -> None:
    monkeypatch.setenv("GCDBENCH_CACHE", str(shared_cache))
    monkeypatch.setenv("GCDBENCH_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("GCDBENCH_PLUGINS", raising=False)


@pytest.fixture
def example_plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The third party's package as a local plugin file: 'nearest-mean', 'stripes' and 'purity' are registered."""
    from gcdbench.plugins.manager import get_manager

    monkeypatch.syspath_prepend(str(EXAMPLE))
    path = EXAMPLE / "gcdbench_example" / "plugin.py"
    monkeypatch.setenv("GCDBENCH_PLUGINS", str(path))
    get_manager.cache_clear()
    yield path
    get_manager.cache_clear()
    for name in [name for name in sys.modules if name.startswith("gcdbench_example")]:
        del sys.modules[name]


@pytest.fixture
def cli() -> Callable[..., Result]:
    """Call ``gcdbench`` in this process: ``cli("run", "--method", ...)``; errors as the user sees them."""
    from gcdbench.cli.main import command
    from gcdbench.core.errors import GCDBenchError

    def call(*arguments: object) -> Result:
        runner = CliRunner()
        result = runner.invoke(command, [str(a) for a in arguments])
        if isinstance(result.exception, GCDBenchError):
            error = result.exception
            result.exit_code = error.exit_code
            result.stderr_bytes = (
                result.stderr_bytes or b""
            ) + f"Error: {error.message}\nHint: {error.hint}\n".encode()
        elif result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call
