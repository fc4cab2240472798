"""Low precision, only where it was seen to work."""

from __future__ import annotations

import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch

from gcdbench.core.errors import TrainingError

PRECISIONS = ("float32", "bfloat16")

# Some CPUs advertise instructions that then kill the process, so the trial runs in a process of its own.
_TRIAL = """
import torch
with torch.autocast("cpu", dtype=torch.bfloat16):
    layer = torch.nn.Sequential(torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.Flatten(), torch.nn.Linear(4096, 64))
    layer(torch.ones(16, 32, 8, 8)).float().square().mean().backward()
assert all(torch.isfinite(p.grad).all() for p in layer.parameters())
"""


@cache
def cpu_runs_bfloat16(timeout: float = 120.0) -> bool:
    """Whether a small bfloat16 training step survives on this CPU."""
    try:
        trial = subprocess.run([sys.executable, "-c", _TRIAL], capture_output=True, timeout=timeout, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return trial.returncode == 0


def check_precision(device: str, precision: str) -> None:
    """Refuse a precision the device cannot do; nothing falls back silently, since results would differ."""
    hint = "use --set precision=float32"
    if precision not in PRECISIONS:
        raise TrainingError(f"'{precision}' is not a precision; known: {', '.join(PRECISIONS)}.", hint=hint)
    if precision == "float32":
        return
    works = torch.cuda.is_bf16_supported() if device.startswith("cuda") else device == "cpu" and cpu_runs_bfloat16()
    if not works:
        raise TrainingError(f"A trial of {precision} failed on this {device} device.", hint=hint)


def autocast(device: str, precision: str) -> AbstractContextManager[object]:
    """The context for forward passes; does nothing in float32."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.partition(":")[0], dtype=getattr(torch, precision))
