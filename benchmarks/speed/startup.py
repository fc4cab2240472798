"""Start-up time of the command line against that of importing click alone."""

from __future__ import annotations

import subprocess
import sys
import time


def time_command(code: str, repeats: int = 7) -> float:
    """Median seconds of a fresh interpreter running ``code``."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return sorted(times)[repeats // 2]


def measure() -> dict[str, float]:
    """Seconds of ``gcdbench --help`` and of ``import click``."""
    help_code = "import sys; sys.argv = ['gcdbench', '--help']; from gcdbench.cli.main import main; main()"
    return {"help": time_command(help_code), "click": time_command("import click")}
