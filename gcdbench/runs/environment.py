"""What a run ran on: versions, machine, repository state, determinism flags. Recorded, never part of the identity."""

from __future__ import annotations

import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from gcdbench.core.errors import ConfigError
from gcdbench.core.machine import cpu_model
from gcdbench.core.work import available_cores
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.numerics import describe_numerics
from gcdbench.runs.record import Environment

PACKAGES = ("gcdbench", "torch", "torchvision", "numpy", "scipy", "scikit-learn", "pandas", "pillow", "safetensors")


def package_versions() -> dict[str, str | None]:
    """Installed versions of what may change a number."""
    found: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def git_state() -> tuple[str, bool]:
    """Commit of the source checkout that is running, and whether it was changed; "" for an installed package."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return "", False
    try:
        sha = _git(root, "rev-parse", "HEAD")
        dirty = bool(_git(root, "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.SubprocessError):
        return "", False
    return sha, dirty


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=10).stdout.strip()


def require_device(device: str) -> None:
    """Refuse a device that torch does not have here, before anything is begun on it."""
    import torch

    here = ["cpu"]
    if torch.cuda.is_available():
        here += ["cuda", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    if torch.backends.mps.is_available():
        here.append("mps")
    if device not in here:
        raise ConfigError(f"There is no device '{device}' on this machine; there is {', '.join(here)}.")


def describe_environment(manager: PluginManager, *, device: str, threads: int | None) -> Environment:
    """What this process runs on."""
    import torch

    from gcdbench.models.kernels import describe_kernels

    commit, dirty = git_state()
    return Environment(
        python=sys.version.split()[0],
        platform=platform.platform(),
        packages=package_versions(),
        plugins={record.distribution: record.version for record in manager.records() if record.ok},
        commit=commit,
        dirty=dirty,
        cpu=cpu_model(),
        cores=available_cores(),
        device=device,
        gpu=torch.cuda.get_device_name(0) if torch.cuda.is_available() else "",
        kernels=describe_kernels(),
        threads=threads or torch.get_num_threads(),
        deterministic_algorithms=torch.are_deterministic_algorithms_enabled(),
        numerics=describe_numerics(device=device, threads=threads),
    )
