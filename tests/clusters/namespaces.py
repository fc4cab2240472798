"""Network namespaces of the tests' own: whatever an engine opens there, nobody outside can reach it."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

_numbers = itertools.count()


@dataclass(frozen=True)
class Namespace:
    """A network namespace with ``lo`` alone."""

    name: str

    def command(self, *words: str) -> list[str]:
        """A command inside of it. Not ``ip netns exec``, which hides /sys/fs/cgroup."""
        return ["nsenter", f"--net=/run/netns/{self.name}", *words]

    def call(self, *words: str) -> str:
        """Run a command inside of it, which must succeed; what it prints."""
        done = subprocess.run(self.command(*words), capture_output=True, text=True, check=False)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout


def require_namespaces(programs: Sequence[str] = ()) -> None:
    """Skip, with the reason, where the tests cannot make a namespace or a program is missing."""
    missing = [name for name in ("ip", "nsenter", *programs) if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed here: {', '.join(missing)}")
    if os.geteuid() != 0:
        pytest.skip("only root can make a network namespace")
    probe = f"gcdprobe{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no network namespace can be made here: {made.stderr.strip()}")
    subprocess.run(["ip", "netns", "del", probe], check=False)


@contextmanager
def namespace(label: str) -> Iterator[Namespace]:
    """A new namespace whose ``lo`` is up; gone afterwards."""
    space = Namespace(f"gcd{label}{os.getpid()}-{next(_numbers)}")
    subprocess.run(["ip", "netns", "add", space.name], check=True)
    try:
        space.call("ip", "link", "set", "lo", "up")
        yield space
    finally:
        subprocess.run(["ip", "netns", "del", space.name], check=False)


def require_only_loopback(space: Namespace) -> None:
    """Nothing in the namespace can be reached from outside: there is no other interface than ``lo``."""
    names = [line.split(":")[1].strip() for line in space.call("ip", "-o", "link").splitlines()]
    assert names == ["lo"]


def listeners(*command: str) -> list[tuple[str, list[int]]]:
    """(address, process ids) of everything that listens on TCP, where ``command`` leads, as ``ss`` tells."""
    found = subprocess.run([*command, "ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in found.splitlines()]
    return [(words[3].rpartition(":")[0], [int(pid) for pid in re.findall(r"pid=(\d+)", words[-1])]) for words in lines]


@contextmanager
def nothing_listens_outside(mark: str) -> Iterator[None]:
    """While the block lasts, no process with ``mark`` in its environment listens in this namespace beyond loopback."""
    reached: set[str] = set()
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(1.0):
            for address, pids in listeners():
                if not address.strip("[]").startswith(("127.", "::1")):
                    reached.update(f"{address} of {pid}" for pid in pids if _has(pid, mark))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert not reached


def _has(pid: int, mark: str) -> bool:
    try:
        return mark.encode() in Path("/proc", str(pid), "environ").read_bytes()
    except OSError:
        return False
