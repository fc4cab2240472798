"""What the memory benchmark counts, and what it does not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

memory = pytest.importorskip("benchmarks.speed.memory", reason="runs from the repository's root")

SIZE = 128 * 2**20
OWN = f"import time; held = bytearray({SIZE}); time.sleep(1)"
MAPPED = "import sys, time, numpy; total = numpy.memmap(sys.argv[1]).sum(); time.sleep(1)"
IN_A_CHILD = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="RssAnon is told by Linux only")
def test_memory_of_children_counts_and_mapped_files_do_not(tmp_path: Path) -> None:
    mapped = tmp_path / "mapped"
    mapped.write_bytes(bytes(SIZE))
    code, peaks = memory.watch([sys.executable, "-c", IN_A_CHILD, OWN])
    assert code == 0
    assert max(peaks.values()) >= SIZE
    code, peaks = memory.watch([sys.executable, "-c", MAPPED, str(mapped)])
    assert code == 0
    assert 0 < max(peaks.values()) < SIZE
