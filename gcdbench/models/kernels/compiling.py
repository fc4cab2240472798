"""Compile the C kernels and try them out before anybody loads them."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from gcdbench.core.files import write_bytes

SOURCES = (Path(__file__).with_name("view_kernel.c"),)
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
TRIAL = """
import ctypes, sys
sys.exit(ctypes.CDLL(sys.argv[1]).try_views())
"""


class CannotCompile(Exception):
    """There will be no kernels here; the text completes a sentence that begins with "because"."""


def find_compiler() -> list[str]:
    """The command of a C compiler: ``CC``, which may have arguments (``ccache gcc -m64``), or one on the path."""
    given = os.environ.get("CC", "").strip()
    if not given:
        for name in ("cc", "gcc", "clang"):
            if found := shutil.which(name):
                return [found]
        raise CannotCompile("there is no C compiler on the path")
    try:
        command = shlex.split(given)
    except ValueError as error:
        raise CannotCompile(f"CC is '{given}', which is not a command ({error})") from None
    if shutil.which(command[0]) is None:
        raise CannotCompile(f"CC is '{given}', and there is no '{command[0]}'")
    return command


def source_digest() -> str:
    """A hash of sources and flags: what decides which bits the kernels give, as far as we decide it."""
    return hashlib.sha256(_sources()).hexdigest()[:16]


def library_name(command: list[str]) -> str:
    """Name of the library that ``command`` makes of these sources for this processor."""
    asked = _run([*command, "--version"], "does not even print its version", timeout=60)
    parts = (_sources(), " ".join(command[1:]).encode(), asked, processor().encode())
    return f"{hashlib.sha256(bytes(1).join(parts)).hexdigest()[:16]}.so"


def build(command: list[str], path: Path) -> None:
    """Compile into ``path``, once a child process has survived a trial of the result; its hash is stored next to it.

    An instruction that the processor advertises and does not have would end the process that tries it.
    """
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        draft = Path(scratch) / path.name
        _run([*command, *FLAGS, "-o", str(draft), *map(str, SOURCES), "-lm"], "failed", timeout=120)
        if not draft.is_file():
            raise CannotCompile(f"the compiler '{shlex.join(command)}' wrote nothing")
        trial = [sys.executable, "-I", "-c", TRIAL, str(draft)]
        try:
            subprocess.run(trial, capture_output=True, check=True, timeout=60)
        except subprocess.SubprocessError:
            raise CannotCompile("the compiled kernels did not survive a trial on this processor") from None
        content = draft.read_bytes()
    write_bytes(path, content)
    # Last: a build that is killed before this is repeated.
    write_bytes(hash_file(path), hashlib.sha256(content).hexdigest().encode())


def intact(path: Path) -> bool:
    """Whether a library is the one that was built; loading a damaged one may end the process."""
    try:
        return hash_file(path).read_bytes() == hashlib.sha256(path.read_bytes()).hexdigest().encode()
    except OSError:
        return False


def hash_file(path: Path) -> Path:
    """The file next to a library that holds its hash."""
    return path.with_name(f"{path.name}.sha256")


def processor() -> str:
    """Name and features of the processor, since a library is made for exactly this one."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return "\n".join(line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part")))


def _sources() -> bytes:
    return b"\0".join((*(source.read_bytes() for source in SOURCES), " ".join(FLAGS).encode()))


def _run(command: list[str], failure: str, *, timeout: float) -> bytes:
    try:
        return subprocess.run(command, capture_output=True, check=True, timeout=timeout).stdout
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip().splitlines()
        detail = f" ({said[0][:200]})" if said else ""
        raise CannotCompile(f"the compiler '{command[0]}' {failure}{detail}") from None
