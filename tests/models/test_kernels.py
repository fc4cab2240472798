"""The compiled kernel is found, built and tried out, from safe places only; where that fails nothing else does."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from gcdbench.core.cache_upkeep import clear_cache
from gcdbench.models import kernels
from gcdbench.models.kernels import compiling, loader, ownership, view_kernel

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no compiler on this machine")
needs_owners = pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners on this system")


def forget() -> None:
    loader._obtain.cache_clear()
    loader._untold.cache_clear()


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache directory and no library loaded."""
    monkeypatch.setenv("GCDBENCH_CACHE", str(tmp_path))
    monkeypatch.delenv(loader.SWITCH, raising=False)
    monkeypatch.delenv("CC", raising=False)
    forget()
    yield tmp_path
    forget()


def make_compiler(folder: Path, body: str) -> str:
    path = folder / "compiler"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def libraries(cache: Path) -> list[Path]:
    return sorted(cache.glob("kernels/*.so"))


VERSION = 'if [ "$1" = --version ]; then echo v; exit 0; fi; '


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("exit 1", "does not even print its version"),
        (f"{VERSION} echo 'no such flag' >&2; exit 1", r"failed \(no such flag\)"),
        (f"{VERSION} exit 0", "wrote nothing"),
        (f"{VERSION} for a; do case $a in *.so) echo rubbish > $a;; esac; done", "did not survive a trial"),
    ],
)
def test_a_useless_compiler_means_plain_torch_and_one_note(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, body: str, reason: str
) -> None:
    monkeypatch.setenv("CC", make_compiler(fresh, body))
    used = kernels.kernels_in_use()
    assert (used.name, used.key) == ("torch", "torch")
    assert kernels.describe_kernels() == "torch"
    note = kernels.kernels_note()
    assert note is not None
    assert re.search(reason, note), note
    assert kernels.kernels_note() is None  # said once
    assert not libraries(fresh)


def test_no_compiler_at_all_means_plain_torch(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(fresh))
    assert kernels.describe_kernels() == "torch"
    assert "no C compiler" in kernels.kernels_in_use().note


@pytest.mark.parametrize("text", ["no-such-compiler -O2", "gcc 'unbalanced"])
def test_a_wrong_cc_is_named(fresh: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("CC", text)
    assert f"CC is '{text}'" in kernels.kernels_in_use().note


def test_the_switch_turns_kernels_off_without_a_word(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(loader.SWITCH, "0")
    assert kernels.kernels_in_use() == loader.KernelsInUse(name="torch", key="torch", note="")
    assert kernels.kernels_note() is None


def test_a_kernel_that_crashes_is_found_out_in_a_child(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an instruction would that the processor advertises and does not have."""
    monkeypatch.setattr(compiling, "TRIAL", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    assert kernels.describe_kernels() == "torch"


@needs_compiler
def test_cc_may_have_arguments(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrapper, the compiler and a flag; another flag gives another library."""
    wrapper = make_compiler(fresh, 'echo "$@" >> "$(dirname "$0")/calls"; exec "$@"')
    for flag in ("-DFIRST", "-DSECOND"):
        forget()
        monkeypatch.setenv("CC", f"{wrapper} '{COMPILER}' {flag}")
        assert kernels.kernels_in_use() == loader.KernelsInUse(name="native", key=kernels.kernels_key(), note="")
    calls = (fresh / "calls").read_text().splitlines()
    assert sum("-DFIRST -O3" in call for call in calls) == 1
    assert len(libraries(fresh)) == 2


@needs_compiler
def test_the_library_is_built_once(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second process finds it."""
    assert kernels.describe_kernels() == "native"
    assert len(libraries(fresh)) == 1
    forget()
    monkeypatch.setattr(loader, "build", lambda *arguments: pytest.fail("built again"))
    assert kernels.describe_kernels() == "native"


@needs_compiler
@pytest.mark.parametrize("damage", ["empty", "cut", "changed", "no hash"])
def test_a_damaged_library_is_built_again(fresh: Path, damage: str) -> None:
    """Loaded as it is, a file that was cut short would end the process."""
    assert kernels.describe_kernels() == "native"
    [file] = libraries(fresh)
    content = file.read_bytes()
    damaged = {"empty": b"", "cut": content[:4096], "changed": content[:-1] + b"x", "no hash": content}[damage]
    # Another file of that name, because this process has mapped the first.
    file.unlink()
    file.write_bytes(damaged)
    if damage == "no hash":
        file.with_name(f"{file.name}.sha256").unlink()
    code = "from gcdbench.models.kernels.loader import load_kernels; assert load_kernels().try_views() == 0"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    assert file.read_bytes() == content
    assert file.with_name(f"{file.name}.sha256").read_text() == hashlib.sha256(content).hexdigest()


@needs_compiler
def test_a_folder_in_the_place_of_the_library_does_not_stop_anybody(fresh: Path) -> None:
    assert kernels.describe_kernels() == "native"
    [file] = libraries(fresh)
    file.unlink()
    file.mkdir()
    forget()
    used = kernels.kernels_in_use()
    assert used.name == "native"
    assert "for this process alone" in used.note


@needs_compiler
@needs_owners
@pytest.mark.parametrize("place", ["library", "folder", "cache"])
def test_what_others_can_write_is_not_loaded(fresh: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """A library with the right hash, in a place where somebody else could have put it."""
    assert kernels.describe_kernels() == "native"
    [file] = libraries(fresh)
    before = file.stat().st_ino
    {"library": file, "folder": file.parent, "cache": fresh}[place].chmod(0o777)
    loaded: list[Path] = []
    real = loader.ctypes.CDLL
    monkeypatch.setattr(loader.ctypes, "CDLL", lambda name: loaded.append(Path(name)) or real(name))
    forget()
    used = kernels.kernels_in_use()
    assert used.name == "native"
    [path] = loaded
    if place == "library":  # its folder is safe: it is built again there
        assert path == file.resolve()
        assert file.stat().st_ino != before
        assert not file.stat().st_mode & 0o022
        assert used.note == ""
    else:
        assert fresh not in path.parents
        assert not path.exists()  # nothing is left behind
        assert "users other than its owner can write to" in used.note


@needs_owners
def test_ownership(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "above" / "folder"
    folder.mkdir(parents=True)
    file = folder / "file"
    file.write_text("x")
    assert ownership.only_mine(file)
    assert not ownership.only_mine(folder / "missing")
    for place, mode, safe in (
        (file, 0o606, False),
        (folder, 0o1777, False),  # sticky, but directly above
        (folder.parent, 0o777, False),
        (folder.parent, 0o1777, True),  # like /tmp
    ):
        usual = place.stat().st_mode
        place.chmod(mode)
        assert ownership.only_mine(file) is safe, (place, oct(mode))
        place.chmod(usual)
    (tmp_path / "link").symlink_to(folder)
    assert ownership.only_mine(tmp_path / "link" / "file")
    folder.parent.chmod(0o777)  # where the link leads to
    assert not ownership.only_mine(tmp_path / "link" / "file")
    folder.parent.chmod(0o755)
    monkeypatch.setattr(os, "getuid", lambda: 12345)  # somebody else's files, unless this user is root
    assert ownership.only_mine(file) is (file.stat().st_uid == 0 and tmp_path.stat().st_uid == 0)


@needs_owners
def test_a_group_may_write_only_if_it_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    file.chmod(0o664)
    for own in (True, False):
        monkeypatch.setattr(ownership, "_own_group", lambda gid, own=own: own)
        assert ownership.only_mine(file) is own


@needs_compiler
def test_sources_are_part_of_the_key(fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = kernels.kernels_key()
    changed = tmp_path / "changed.c"
    changed.write_bytes(compiling.SOURCES[0].read_bytes() + b"/* another version */")
    monkeypatch.setattr(compiling, "SOURCES", (changed,))
    forget()
    assert kernels.kernels_key() != before
    assert len(libraries(fresh)) == 2


@needs_compiler
def test_clearing_the_cache_clears_kernels(fresh: Path) -> None:
    assert kernels.describe_kernels() == "native"
    clear_cache(fresh, kind="banks")
    assert len(list(fresh.glob("kernels/*"))) == 2
    clear_cache(fresh)
    assert not list(fresh.glob("kernels/*"))


def test_loading_leaves_floating_point_modes_alone(fresh: Path) -> None:
    """Tiny numbers are not flushed to zero by a library that is merely loaded."""
    code = "import torch; from gcdbench.models.kernels.loader import load_kernels; load_kernels();"
    code += "assert torch.tensor(1e-40).mul(1.0).item() > 0; assert 1e-310 * 1.0 > 0"
    subprocess.run([sys.executable, "-c", code], check=True)


@needs_compiler
def test_make_views_refuses_what_the_kernel_cannot_read() -> None:
    """Past the end of an array the kernel would read whatever is there."""
    square = np.zeros((2, 8, 8, 3), dtype=np.uint8)
    given = {
        "top": np.zeros(2, dtype=np.int64),
        "left": np.zeros(2, dtype=np.int64),
        "flip": np.zeros(2, dtype=np.bool_),
        "factors": np.ones((2, 4), dtype=np.float32),
        "order": np.full((2, 4), -1),
        "mean": (0.0, 0.0, 0.0),
        "std": (1.0, 1.0, 1.0),
    }
    assert view_kernel.make_views(square, 4, **given).shape == (2, 3, 4, 4)
    with pytest.raises(ValueError, match="square images"):
        view_kernel.make_views(square[:, :6], 4, **given)
    with pytest.raises(ValueError, match="parameters for each"):
        view_kernel.make_views(square, 4, **{**given, "order": given["order"][:1]})
    with pytest.raises(ValueError, match="inside"):
        view_kernel.make_views(square, 4, **{**given, "top": np.array([0, 5])})


def test_share_covers_everything_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of threads: every index once, and a failure is an error."""
    for threads, count in ((1, 5), (2, 5), (4, 3)):
        monkeypatch.setattr(torch, "get_num_threads", lambda n=threads: n)
        seen: list[int] = []
        view_kernel.share(lambda first, last, seen=seen: seen.extend(range(first.value, last.value)) or 0, count)
        assert sorted(seen) == list(range(count))
    with pytest.raises(MemoryError):
        view_kernel.share(lambda first, last: 1, 3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_does_not_wait_for_its_parents_threads() -> None:
    """The pool is used, the process forks, the child uses a pool of its own."""
    code = """
import os, torch
from gcdbench.models.kernels.view_kernel import share
torch.set_num_threads(2)
share(lambda first, last: 0, 4)
child = os.fork()
if child == 0:
    share(lambda first, last: 0, 4)
    os._exit(0)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)
