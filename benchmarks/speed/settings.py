"""What is timed, and how an answer travels from a measuring process to the one that compares."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One measurement; every measurement has a process of its own, so that none inherits another's memory or threads.

    images: how many of the folder are used; steps: timed training steps; warmup: steps before the clock starts.
    """

    folder: str
    backbone: str = "efficientnet-lite0"
    image_size: int = 128
    batch: int = 128
    images: int = 4000
    steps: int = 8
    warmup: int = 3
    threads: int = 2
    workers: int = 2
    views: str = "bank:16"
    k: int = 8
    cache: str = ""


def parse_settings() -> Settings:
    """Settings from the command line of a measuring process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("settings", help="a JSON object")
    return Settings(**json.loads(parser.parse_args().settings))


def start(module: str, settings: Settings, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start a measuring process; ``environment`` is added to this process's own."""
    command = [sys.executable, "-m", f"benchmarks.speed.{module}", json.dumps(asdict(settings))]
    own = {"OPENBLAS_NUM_THREADS": str(settings.threads)}  # numpy's library reads it when it is loaded
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **own, **(environment or {})}
    )


def finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What a measuring process found: the JSON object on the last line it printed."""
    output, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"a measurement failed with exit code {process.returncode}")
    answer: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    return answer


def measure(module: str, settings: Settings, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run one measurement to its end."""
    return finish(start(module, settings, environment))
