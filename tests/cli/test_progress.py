"""The progress bar in a window of 80 columns: what a reader waits for stays, the losses give way."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable

import pytest

from gcdbench.cli.progress import ProgressDisplay
from gcdbench.cli.sweep_progress import SweepDisplay
from gcdbench.runs.events import Progress, StepProgress

LOSSES = {"cls_s": 1.25, "cls_u": 2.5, "entropy": -0.75, "con_s": 3.125, "con_u": 4.0, "patch": 0.5, "agreement": 0.125}
HALF_WAY = StepProgress(epoch=10, epochs=20, step=0, steps=9, losses=LOSSES, images_per_s=812.0, eta_s=125.0)
CONTROL = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")


class Terminal(io.StringIO):
    """A window, as far as programs can tell."""

    def isatty(self) -> bool:
        return True


Show = Callable[..., str]


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch) -> Show:
    """The line that stands in a window of ``width`` columns when a display has heard its events."""

    def call(make: Callable[[], ProgressDisplay | SweepDisplay], *said: object, width: int = 80) -> str:
        window = Terminal()
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("COLUMNS", str(width))
        with monkeypatch.context() as patch:  # pytest puts its own stream there before a test begins
            patch.setattr(sys, "stderr", window)
            with make() as display:
                display(*said)
        lines = re.split(r"[\r\n]+", CONTROL.sub("", window.getvalue()))
        return next(line for line in reversed(lines) if line.strip())

    return call


def test_bar_percentage_and_time_left_stay_and_losses_go_first(show: Show) -> None:
    line = show(ProgressDisplay, HALF_WAY)
    assert len(line) <= 80
    assert line.count("━") + line.count("╸") + line.count("╺") == 20
    assert " 50%" in line
    assert line.count("left") == 1  # one estimate, not two that disagree
    assert "2 min left" in line
    assert "epoch 11/20" in line
    assert "agreement" not in line


def test_a_wide_window_has_the_losses_too(show: Show) -> None:
    line = show(ProgressDisplay, HALF_WAY, width=240)
    assert "2 min left" in line
    for name, value in LOSSES.items():
        assert f"{name} {value:.3f}" in line


@pytest.mark.parametrize("detail", ["", "a detail that is much too long for any window " * 3])
def test_other_work_keeps_bar_and_percentage_as_well(detail: str, show: Show) -> None:
    line = show(ProgressDisplay, Progress(task="decoding images", done=30, total=120, detail=detail))
    assert len(line) <= 80
    assert "decoding images" in line
    assert " 25%" in line


def test_a_sweep_keeps_bar_count_and_time_left_beside_a_long_name(show: Show) -> None:
    job = object()
    name = "main: MedXplore without margins, OrganAMNIST, seed 17, and a few more words of the suite"
    line = show(lambda: SweepDisplay({id(job): name}), job, HALF_WAY)
    assert len(line) <= 80
    assert line.startswith("main: MedXplore")
    assert "━" in line
    assert "10.0/20" in line or "10/20" in line
    assert "2 min left" in line
