"""A training that is asked to stop ends after its step, with a checkpoint from which it goes on exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcdbench.methods.simgcd import SimGCD, SimGCDConfig
from gcdbench.testing.tiny import shrink, tiny_context, tiny_task
from gcdbench.training.stopping import ask_to_stop, forget


@pytest.fixture(autouse=True)
def _no_wish() -> Iterator[None]:
    forget()
    yield
    forget()


def test_it_stops_with_a_checkpoint_and_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    data, task, _ = tiny_task()
    context = replace(tiny_context(epochs=4), checkpoint_seconds=1e9)  # no other checkpoint than the one asked for

    def fitted(folder: Path | None, **more: Any) -> np.ndarray:
        method = shrink(SimGCD)(SimGCDConfig(), task, replace(context, checkpoint_dir=folder, **more))
        method.fit(data)
        embedding = method.predict(data.unlabelled).embedding
        assert embedding is not None
        return np.asarray(embedding)

    def warn(event: Mapping[str, Any]) -> None:
        if event["type"] == "epoch" and event["epoch"] == 1:
            ask_to_stop()

    with pytest.raises(KeyboardInterrupt):
        fitted(tmp_path, log=warn)
    forget()
    said: list[Mapping[str, Any]] = []
    resumed = fitted(tmp_path, log=said.append)
    [event] = [event for event in said if event["type"] == "resumed"]
    assert (event["epoch"], event["step"]) == (2, 1)
    assert np.array_equal(resumed, fitted(None))
