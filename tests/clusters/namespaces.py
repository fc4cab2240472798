"""Network namespaces of the tests' own: whatever an engine opens there, nobody outside can reach it."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

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
