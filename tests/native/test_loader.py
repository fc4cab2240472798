"""The compiled kernels are found, built and tried out; where that fails nothing else does."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gcdbench.core.cache_upkeep import clear_cache
from gcdbench.models.kernels import loader


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache directory and no library loaded."""
    monkeypatch.setenv("GCDBENCH_CACHE", str(tmp_path))
    monkeypatch.delenv(loader.SWITCH, raising=False)
    loader.load_kernels.cache_clear()
    yield tmp_path
    loader.load_kernels.cache_clear()


def make_compiler(folder: Path, body: str) -> str:
    path = folder / "compiler"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    "body",
    [
        "exit 1",  # fails at once
        'if [ "$1" = --version ]; then echo v; exit 0; fi; exit 1',  # cannot compile
        'if [ "$1" = --version ]; then echo v; exit 0; fi; exit 0',  # says it compiled and wrote nothing
        'if [ "$1" = --version ]; then echo v; exit 0; fi; for a; do case $a in *.so) echo rubbish > $a;; esac; done',
    ],
)
def test_a_useless_compiler_means_plain_torch(fresh: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Silently: the user loses speed and nothing else."""
    monkeypatch.setenv("CC", make_compiler(fresh, body))
    assert loader.load_kernels() is None
    assert loader.describe_kernels() == "torch"
    assert not list(fresh.glob("kernels/*.so"))


def test_no_compiler_at_all_means_plain_torch(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(fresh))
    assert loader.load_kernels() is None


def test_the_switch_turns_kernels_off(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(loader.SWITCH, "0")
    assert loader.load_kernels() is None


def test_a_kernel_that_crashes_is_found_out_in_a_child(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an instruction would that the processor advertises and does not have."""
    monkeypatch.setattr(loader, "TRIAL", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    assert loader.load_kernels() is None


def test_the_library_is_built_once(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second process finds it."""
    if loader.load_kernels() is None:
        pytest.skip("no compiler on this machine")
    assert len(list(fresh.glob("kernels/*.so"))) == 1
    loader.load_kernels.cache_clear()
    monkeypatch.setattr(loader, "_build", lambda *arguments: pytest.fail("built again"))
    assert loader.load_kernels() is not None


@pytest.mark.parametrize("damage", ["empty", "cut", "changed", "no hash"])
def test_a_damaged_library_is_built_again(fresh: Path, damage: str) -> None:
    """Loaded as it is, a file that was cut short would end the process."""
    if loader.load_kernels() is None:
        pytest.skip("no compiler on this machine")
    [file] = fresh.glob("kernels/*.so")
    content = file.read_bytes()
    damaged = {"empty": b"", "cut": content[:4096], "changed": content[:-1] + b"x", "no hash": content}[damage]
    # Another file of that name, because this process has mapped the first.
    file.unlink()
    file.write_bytes(damaged)
    if damage == "no hash":
        file.with_name(f"{file.name}.sha256").unlink()
    code = "from gcdbench.models.kernels.loader import load_kernels; assert load_kernels().try_kernels() == 0"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    assert file.read_bytes() == content
    assert file.with_name(f"{file.name}.sha256").read_text() == hashlib.sha256(content).hexdigest()


def test_the_library_is_on_the_disk_before_it_has_its_name(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut would otherwise leave its name with half its content."""
    named: list[bool] = []
    monkeypatch.setattr(loader, "sync", lambda draft: named.append(bool(list(fresh.glob("kernels/*.so")))))
    if loader.load_kernels() is None:
        pytest.skip("no compiler on this machine")
    assert named == [False]


def test_clearing_the_cache_clears_kernels(fresh: Path) -> None:
    if loader.load_kernels() is None:
        pytest.skip("no compiler on this machine")
    clear_cache(fresh, kind="banks")
    assert len(list(fresh.glob("kernels/*"))) == 2
    clear_cache(fresh)
    assert not list(fresh.glob("kernels/*"))


def test_loading_leaves_floating_point_modes_alone(fresh: Path) -> None:
    """Tiny numbers are not flushed to zero by a library that is merely loaded."""
    code = "import torch; from gcdbench.models.kernels.loader import load_kernels; load_kernels();"
    code += "assert torch.tensor(1e-40).mul(1.0).item() > 0; assert 1e-310 * 1.0 > 0"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_pointer_refuses_what_the_kernels_cannot_read() -> None:
    for tensor in (torch.zeros(4, 4).t()[1:], torch.zeros(2, dtype=torch.float64), torch.zeros(2, dtype=torch.int64)):
        with pytest.raises(ValueError, match="contiguous"):
            loader.pointer(tensor)


def test_share_covers_everything_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of threads: every index once, and a failure is an error."""
    for threads, count in ((1, 5), (2, 5), (4, 3)):
        monkeypatch.setattr(torch, "get_num_threads", lambda n=threads: n)
        seen: list[int] = []
        loader.share(lambda first, last, seen=seen: seen.extend(range(first.value, last.value)) or 0, count)
        assert sorted(seen) == list(range(count))
    with pytest.raises(MemoryError):
        loader.share(lambda first, last: 1, 3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_does_not_wait_for_its_parents_threads() -> None:
    """The pool is used, the process forks, the child uses a pool of its own."""
    code = """
import os, torch
from gcdbench.models.kernels.loader import share
torch.set_num_threads(2)
share(lambda first, last: 0, 4)
child = os.fork()
if child == 0:
    share(lambda first, last: 0, 4)
    os._exit(0)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)
