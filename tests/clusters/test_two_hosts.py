"""One run on two hosts by ``torchrun``, as docs/executors.md has it: two network namespaces with a cable between."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.record import DONE
from tests.clusters.namespaces import Namespace, namespace, require_namespaces

pytestmark = pytest.mark.cluster
DOCS = Path(__file__).resolve().parents[2] / "docs" / "executors.md"
ADDRESSES = ("10.212.0.1", "10.212.0.2")
CABLE = "eth0"
SMALL = ("--preset", "smoke", "--set", "image_size=32", "--set", "views=bank:2", "--quiet")


@pytest.fixture
def hosts() -> Iterator[list[Namespace]]:
    """Two namespaces that reach each other and nothing else."""
    require_namespaces()
    with namespace("one") as one, namespace("two") as two:
        pair = ["ip", "link", "add", CABLE, "netns", one.name, "type", "veth", "peer", "name", CABLE, "netns", two.name]
        subprocess.run(pair, check=True)
        for space, address in zip((one, two), ADDRESSES, strict=True):
            space.call("ip", "addr", "add", f"{address}/24", "dev", CABLE)
            space.call("ip", "link", "set", CABLE, "up")
        yield [one, two]


def documented(rank: int) -> list[str]:
    """The documented command for one host, with this test's names in the place of the reader's."""
    [text] = re.findall(r"^GLOO_SOCKET_IFNAME=.*?torchrun(.*?)^```", DOCS.read_text(), re.MULTILINE | re.DOTALL)
    words = shlex.split(text.replace("\\\n", " ").replace("FIRST_HOST", ADDRESSES[0]).replace("THIS_RANK", str(rank)))
    return [sys.executable, "-m", "torch.distributed.run", *words]


def test_two_hosts_make_one_stored_run(hosts: list[Namespace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", CABLE)
    monkeypatch.delenv("GCDBENCH_RUNS")
    logs = [tmp_path / f"{rank}.log" for rank in range(2)]
    ranks = []
    for rank, (host, log) in enumerate(zip(hosts, logs, strict=True)):
        with log.open("wb") as output:
            words = host.command(*documented(rank), *SMALL)
            ranks.append(subprocess.Popen(words, cwd=tmp_path, stdout=output, stderr=output))
    try:
        for process, log in zip(ranks, logs, strict=True):
            assert process.wait(timeout=240) == 0, log.read_text()
    finally:
        for process in ranks:
            process.kill()
    [path] = (tmp_path / "runs").glob("*/*/*/run.json")
    record = RunDirectory(path.parent).record()
    assert (record.status, record.world_size) == (DONE, 2)
