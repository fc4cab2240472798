"""A run says once that it has to do without compiled kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from gcdbench.methods.configs import SimGCDConfig
from gcdbench.methods.simgcd import SimGCD
from gcdbench.models.kernels import loader
from gcdbench.testing.tiny import shrink, tiny_context, tiny_task


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(loader.SWITCH, raising=False)
    loader._obtain.cache_clear()
    loader._untold.cache_clear()
    yield
    loader._obtain.cache_clear()
    loader._untold.cache_clear()


@pytest.mark.parametrize(("switch", "notes"), [("1", 1), ("0", 0)])
def test_a_run_without_kernels_says_so_once(monkeypatch: pytest.MonkeyPatch, switch: str, notes: int) -> None:
    """Not for each store it opens, nor for the next run of the process; and not where the user wanted it so."""
    monkeypatch.setenv("CC", "/no/such/compiler")
    monkeypatch.setenv(loader.SWITCH, switch)
    heard: list[Mapping[str, Any]] = []
    for seed in (0, 1):
        data, task, _ = tiny_task(seed=seed)
        method = shrink(SimGCD)(SimGCDConfig(), task, tiny_context(epochs=1, log=heard.append))
        method.fit(data)
        method.predict(data.unlabelled)
    said = [event["message"] for event in heard if event["type"] == "note" and "operators" in event["message"]]
    assert len(said) == notes
    assert all("/no/such/compiler" in text for text in said)
