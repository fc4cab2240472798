"""Compile and load the C kernels, once for each machine; without a C compiler nothing is lost but speed.

The library is built into the cache directory under a name that holds the source, the compiler and the processor,
tried out in a child process (an instruction that the processor advertises and does not have would end it), and only
then loaded. Its hash lies beside it, because loading a damaged library may end the process. Any failure on the way
means None, and callers use torch's operators instead.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from gcdbench.core.errors import StoreError
from gcdbench.core.files import sync, write_bytes
from gcdbench.core.places import cache_dir

SOURCES = tuple(Path(__file__).with_name(name) for name in ("separable.c", "views.c"))
# Sums may be reordered for vectorisation; infinities and NaN must still pass through, so no -ffast-math.
FLAGS = (
    "-O3",
    "-march=native",
    "-std=c11",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-signed-zeros",
    "-fassociative-math",
    "-freciprocal-math",
    "-fPIC",
    "-shared",
)
SWITCH = "GCDBENCH_NATIVE"
"""Set this environment variable to 0 to do without compiled kernels."""

TRIAL = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
sys.exit(library.try_kernels() or library.try_views())
"""


class Geometry(ctypes.Structure):
    """Sizes of a filter; the C structure of the same name."""

    _fields_ = tuple(
        (name, ctypes.c_int64)
        for name in ("batch", "height", "width", "out_height", "out_width", "kernel", "stride", "top", "left")
    )


@lru_cache(maxsize=1)
def load_kernels() -> ctypes.CDLL | None:
    """The compiled kernels, or None where they cannot be had."""
    if os.environ.get(SWITCH) == "0":
        return None
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    try:
        path = _library_path(compiler)
        if not _intact(path):
            _build(compiler, path)
        return ctypes.CDLL(str(path))
    except (OSError, StoreError, subprocess.SubprocessError):
        return None


def describe_kernels() -> str:
    """``"native"`` or ``"torch"``: which kernels this process makes views and trains separable stages with."""
    return "torch" if load_kernels() is None else "native"


def kernels_key() -> str:
    """As ``describe_kernels``, with a hash of sources and flags: part of the key of what is made with the kernels."""
    return "torch" if load_kernels() is None else f"native-{hashlib.sha256(_sources()).hexdigest()[:16]}"


def _sources() -> bytes:
    return b"\0".join((*(source.read_bytes() for source in SOURCES), " ".join(FLAGS).encode()))


def _library_path(compiler: str) -> Path:
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True, timeout=60).stdout
    key = hashlib.sha256(b"\0".join((_sources(), version, _processor().encode()))).hexdigest()[:16]
    return cache_dir() / "kernels" / f"{key}.so"


def _processor() -> str:
    """Name and features of the processor, since the library is made for exactly this one."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return "\n".join(line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part")))


def _intact(path: Path) -> bool:
    try:
        return _hash_file(path).read_bytes() == _digest(path)
    except FileNotFoundError:
        return False


def _hash_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).hexdigest().encode()


def _build(compiler: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        draft = Path(scratch) / path.name
        command = [compiler, *FLAGS, "-o", str(draft), *map(str, SOURCES), "-lm"]
        subprocess.run(command, capture_output=True, check=True, timeout=120)
        subprocess.run([sys.executable, "-I", "-c", TRIAL, str(draft)], capture_output=True, check=True, timeout=60)
        digest = _digest(draft)
        sync(draft)
        os.replace(draft, path)
    # Last: a build that is killed before this is repeated.
    write_bytes(_hash_file(path), digest)


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork; a child that kept the pool would wait for them for ever.
    os.register_at_fork(after_in_child=_pool.cache_clear)


def share(function: Callable[..., int], count: int, *arguments: object) -> None:
    """Call ``function(first, last, *arguments)`` until all of ``count`` is done, with torch's number of threads."""
    threads = min(torch.get_num_threads(), count)
    if threads <= 1:
        failed = function(ctypes.c_int64(0), ctypes.c_int64(count), *arguments)
    else:
        bounds = [count * i // threads for i in range(threads + 1)]
        calls = [
            _pool(threads).submit(function, ctypes.c_int64(first), ctypes.c_int64(last), *arguments)
            for first, last in pairwise(bounds)
        ]
        failed = max(call.result() for call in calls)
    if failed:
        raise MemoryError("a compiled kernel could not allocate its working memory")


def pointer(tensor: Tensor, dtype: torch.dtype = torch.float32) -> ctypes.c_void_p:
    """Address of a contiguous CPU tensor of that type."""
    if not (tensor.is_contiguous() and tensor.dtype == dtype and tensor.device.type == "cpu"):
        raise ValueError(f"kernels take contiguous {dtype} tensors on the CPU")
    return ctypes.c_void_p(tensor.data_ptr())
