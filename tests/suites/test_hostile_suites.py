"""Suites of third parties: any text gives a suite or a ConfigError, and what is planned from it survives as well."""

from __future__ import annotations

import copy
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gcdbench.core.errors import GCDBenchError
from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.suites.planning import plan_suite
from gcdbench.reporting.suites.read import load_suite

SOUND: dict[str, Any] = {
    "title": "Small",
    "kind": "comparison",
    "protocol": "half",
    "scores": ["all", "old"],
    "notes": ["a note"],
    "presets": {"smoke": {"seeds": [0, 1], "stand_in": "missing", "set": {"image_size": 32}}},
    "columns": [{"dataset": "phantom", "title": "Phantom"}],
    "rows": [
        {"method": "kmeans"},
        {"method": "simgcd", "title": "x", "set": {"lr": 0.1}, "set_in": {"smoke": {"epochs": 1}}},
    ],
    "sweeps": [{"method": "simgcd", "setting": "lr", "values": [0.1, 0.2], "executor": {"slurm": {"time": 3}}}],
}
VALUES = st.sampled_from(
    [
        True, -1, 10**15, 10**400, 0.5, float("nan"), float("inf"), "", "x", "\x1b[2J", "../../x", [], [1], ["a"], [["a"]],
        {}, {"a": 1}, [{"a": {"b": []}}], [{}], "phantom", "simgcd",
    ]
)  # fmt: skip


@pytest.fixture(scope="module")
def manager() -> PluginManager:
    return PluginManager(points=[])


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in inner for place in ((*path, key), *places(item, (*path, key)))]


def try_suite(path: Path, manager: PluginManager) -> None:
    with suppress(GCDBenchError):
        plan_suite(load_suite(path, manager), "smoke", manager, [])


def test_the_unchanged_suite_is_planned(tmp_path: Path, manager: PluginManager) -> None:
    (tmp_path / "suite.toml").write_text(tomli_w.dumps(SOUND))
    assert len(plan_suite(load_suite(tmp_path / "suite.toml", manager), "smoke", manager, []).runs) == 8


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(st.tuples(st.sampled_from(places(SOUND)), VALUES, st.booleans()), min_size=1, max_size=2),
)
def test_a_changed_suite_is_read_or_refused(
    tmp_path: Path, manager: PluginManager, changes: list[tuple[tuple[Any, ...], Any, bool]]
) -> None:
    table = copy.deepcopy(SOUND)
    for place, value, delete in changes:
        inner: Any = table
        try:
            for key in place[:-1]:
                inner = inner[key]
            if delete:
                del inner[place[-1]]
            else:
                inner[place[-1]] = copy.deepcopy(value)
        except (KeyError, IndexError, TypeError):
            continue  # the first change has removed the place of the second
    path = tmp_path / "suite.toml"
    path.write_text(tomli_w.dumps(table))
    try_suite(path, manager)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=80) | st.text(max_size=80).map(lambda text: text.encode(errors="replace")))
def test_any_bytes_are_read_or_refused(tmp_path: Path, manager: PluginManager, content: bytes) -> None:
    path = tmp_path / "suite.toml"
    path.write_bytes(content)
    try_suite(path, manager)


@pytest.mark.parametrize("content", [b"a = " + b"[" * 50_000, b"a = " + b"{b=" * 50_000, b"[" + b"a." * 50_000 + b"a]"])
def test_nesting_is_refused(tmp_path: Path, manager: PluginManager, content: bytes) -> None:
    path = tmp_path / "suite.toml"
    path.write_bytes(content)
    with pytest.raises(GCDBenchError):
        load_suite(path, manager)
