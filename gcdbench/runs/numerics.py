"""What decides the last bits of a result: processor, libraries, kernels, threads, device.

A run's id names the experiment, not its last bits. What a run used is recorded as one field, shown, and compared where
results of one id meet: on resume and on import.
"""

from __future__ import annotations

import platform
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

NOT_RECORDED = "not recorded"
FEATURES = re.compile(r"(avx|amx|fma|f16c|asimd|sve|bf16|i8mm)\w*")
"""Processor features that kernels choose between."""


@dataclass(frozen=True, kw_only=True)
class Numerics:
    """What one process computed with; an empty text is something that was not recorded.

    processor: maker, family and model. features: instruction sets that kernels choose between. capability: what torch
    chose among them. libraries: BLAS and the like, as torch and numpy name them. products: which of torch's libraries
    multiplies matrices in training. kernels: "torch", or "native" with a hash of our sources.
    """

    processor: str = ""
    features: tuple[str, ...] = ()
    capability: str = ""
    libraries: str = ""
    products: str = ""
    kernels: str = ""
    torch: str = ""
    threads: int = 0
    device: str = ""

    def differences(self, other: Numerics) -> list[str]:
        """What differs, as ``"threads: 1, 2"``; what either side did not record differs from nothing."""
        pairs = ((name, value, getattr(other, name)) for name, value in asdict(self).items())
        return [
            f"{name}: {_shown(mine)}, {_shown(theirs)}"
            for name, mine, theirs in pairs
            if mine and theirs and mine != theirs
        ]

    def to_table(self) -> dict[str, Any]:
        """What is stored."""
        return {**asdict(self), "features": list(self.features)}

    def __str__(self) -> str:
        named = {name: _shown(value) for name, value in asdict(self).items() if value}
        return "; ".join(f"{name} {text}" for name, text in named.items()) or NOT_RECORDED


def _shown(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def describe_numerics(*, device: str, threads: int | None) -> Numerics:
    """What this process computes with."""
    import torch

    from gcdbench.models.kernels.loader import kernels_key
    from gcdbench.models.products import product_library

    processor, features = _processor()
    on_gpu = device.startswith("cuda") and torch.cuda.is_available()
    return Numerics(
        processor=processor,
        features=features,
        capability=str(torch.backends.cpu.get_cpu_capability()),
        libraries=_libraries(torch.__config__.show()),
        products=product_library(),
        kernels=kernels_key(),
        torch=str(torch.__version__),
        threads=threads or torch.get_num_threads(),
        device=f"{device} ({torch.cuda.get_device_name(torch.device(device))})" if on_gpu else device,
    )


def _processor() -> tuple[str, tuple[str, ...]]:
    """Maker, family and model, and the features that matter; less where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except (OSError, UnicodeDecodeError):
        return platform.processor() or platform.machine(), ()
    said = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    names = ("vendor_id", "cpu family", "model", "CPU implementer", "CPU part")
    named = " ".join(said[name] for name in names if name in said)
    flags = (said.get("flags") or said.get("Features") or "").split()
    return (
        f"{platform.machine()} {named}".strip(),
        tuple(sorted(flag for flag in set(flags) if FEATURES.fullmatch(flag))),
    )


def _libraries(torch_says: str) -> str:
    """``MKL 2024.2, oneDNN 3.12.0 (torch), scipy-openblas 0.3.31 (numpy)``."""
    import numpy as np

    known = {
        "MKL": r"Math Kernel Library Version (\S+?)[-\s]",
        "oneDNN": r"MKL-DNN v(\S+)",
        "OpenBLAS": r"OpenBLAS (\d\S*)",
        "CUDA": r"CUDA Runtime (\S+)",
        "cuDNN": r"CuDNN (\d\S*)",
    }
    found = [f"{name} {match[1]}" for name, pattern in known.items() if (match := re.search(pattern, torch_says))]
    said: Any = np.show_config(mode="dicts")
    blas = said["Build Dependencies"].get("blas", {})
    numpy_says = f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()
    return f"{', '.join(found) or 'unknown'} (torch), {numpy_says} (numpy)"
