from __future__ import annotations

import dataclasses
import subprocess
from contextlib import nullcontext
from typing import Any

import pytest
import torch

from gcdbench.core.errors import TrainingError
from gcdbench.methods.configs import SimGCDConfig
from gcdbench.methods.simgcd import SimGCD
from gcdbench.models.backbone import TailOutput
from gcdbench.testing.tiny import shrink, tiny_context, tiny_task
from gcdbench.training import precision


@pytest.fixture(autouse=True)
def _forget_trials() -> Any:
    precision.cpu_runs_bfloat16.cache_clear()
    yield
    precision.cpu_runs_bfloat16.cache_clear()


def test_float32_needs_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: pytest.fail("a process was started"))
    precision.check_precision("cpu", "float32")
    assert isinstance(precision.autocast("cpu", "float32"), nullcontext)


@pytest.mark.parametrize("died_with", [-4, 1])
def test_a_trial_that_dies_refuses_low_precision(monkeypatch: pytest.MonkeyPatch, died_with: int) -> None:
    """−4 is SIGILL: the flag is advertised, the instruction kills."""
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, died_with))
    with pytest.raises(TrainingError, match="trial of bfloat16 failed"):
        precision.check_precision("cpu", "bfloat16")


def test_a_trial_that_hangs_refuses_low_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*arguments: Any, **options: Any) -> None:
        raise subprocess.TimeoutExpired("python", 1.0)

    monkeypatch.setattr(subprocess, "run", hang)
    assert not precision.cpu_runs_bfloat16()


def test_an_unknown_precision_is_named() -> None:
    with pytest.raises(TrainingError, match="'float8' is not a precision"):
        precision.check_precision("cpu", "float8")


def test_autocast_lowers_the_precision_of_products(monkeypatch: pytest.MonkeyPatch) -> None:
    with precision.autocast("cpu", "bfloat16"):
        assert torch.is_autocast_enabled("cpu")
        assert torch.get_autocast_dtype("cpu") == torch.bfloat16


def test_test_views_have_the_precision_of_training_views(monkeypatch: pytest.MonkeyPatch) -> None:
    """The frozen prefix is never run in low precision; the tail is."""
    data, task, _ = tiny_task()
    context = dataclasses.replace(tiny_context(), precision="bfloat16")
    method = shrink(SimGCD)(SimGCDConfig(), task, context)
    method._open(data.labelled.store)
    lowered: dict[str, bool] = {}
    test_views = method.views.test

    def views(ids: Any) -> torch.Tensor:
        lowered["prefix"] = torch.is_autocast_enabled("cpu")
        return test_views(ids)

    def tail(hidden: torch.Tensor) -> TailOutput:
        lowered["tail"] = torch.is_autocast_enabled("cpu")
        return TailOutput(map=hidden, pooled=torch.zeros(len(hidden), method.backbone.channels))

    monkeypatch.setattr(method.views, "test", views)
    monkeypatch.setattr(method.backbone, "run_tail", tail)
    method.embed(data.unlabelled)
    assert lowered == {"prefix": False, "tail": True}
