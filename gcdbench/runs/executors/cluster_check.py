"""Whether a sweep will work on a cluster: engine, store, locks, clocks, and what workers have installed."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from gcdbench.core.locks import system_lock
from gcdbench.core.places import cache_dir
from gcdbench.runs.executors.probe import LOCK, TOKEN, Probed, versions_here, weights_here
from gcdbench.runs.executors.queue import FOLDER
from gcdbench.runs.leases import lock_mode, locks_by_mount, mount_of, write_mode

Level = Literal["ok", "warning", "problem"]
Finding = tuple[Level, str]
Ask = Callable[[Path], Sequence[Probed]]
"""Starts the probe on workers, each looking at this folder; what they found."""
CLOCK_SECONDS = 30.0
"""Clocks that differ by more make the times of a sweep hard to read; nothing else depends on them."""


def check_cluster(runs: Path, engine: str, ask: Ask) -> Iterator[Finding]:
    """One finding after another; writes into the store how its runs are to be locked."""
    store = runs.absolute()
    mount = mount_of(store)
    free = shutil.disk_usage(_existing(store)).free / 2**30
    yield "ok", f"store {store}: file system {mount.kind}, {free:.1f} GiB free"
    cache = cache_dir().absolute()
    kind = mount_of(cache).kind
    if locks_by_mount(mount_of(cache)) == "lease":
        yield (
            "warning",
            f"cache {cache}: the locks of its file system ({kind}) do not reach other hosts; set GCDBENCH_CACHE to a "
            "folder on a disk of each host, or on a file system with locks",
        )
    else:
        yield "ok", f"cache {cache}: file system {kind}"
    folder = store / FOLDER / f"probe-{secrets.token_hex(4)}"
    folder.mkdir(parents=True)
    try:
        yield from _ask_workers(store, folder, engine, ask)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _ask_workers(store: Path, folder: Path, engine: str, ask: Ask) -> Iterator[Finding]:
    token = secrets.token_hex(16)
    (folder / TOKEN).write_text(token)
    began = time.time()
    lock = system_lock(folder / LOCK)
    with suppress(OSError):  # a file system without locks: then no worker sees one either
        lock.acquire()
    try:
        workers = ask(folder)
    finally:
        lock.release()
    ended = time.time()
    if not workers:
        promised = locks_by_mount(mount_of(store))
        yield "warning", f"{engine}: no worker answered in time, so nothing is known about workers"
        yield "warning", f"locks: the file system promises '{promised}', which was not tried"
        return
    hosts = {worker.host for worker in workers}
    yield "ok", f"{engine}: {len(workers)} workers on {len(hosts)} hosts answered"
    if unseen := [worker for worker in workers if worker.token != token]:
        yield "problem", f"store: {len(unseen)} of {len(workers)} workers do not see it; it must be on a shared disk"
        return
    if mute := [worker for worker in workers if not worker.writes]:
        yield "problem", f"store: {len(mute)} of {len(workers)} workers cannot write to it"
    yield from _locks(store, workers)
    yield from _clocks(workers, began, ended)
    yield from _same("versions", [worker.versions for worker in workers], versions_here())
    yield from _same("weights", [worker.weights for worker in workers], weights_here())


def _locks(store: Path, workers: Sequence[Probed]) -> Iterator[Finding]:
    from gcdbench.runs.directory import this_host

    away = [worker for worker in workers if worker.host != this_host()]
    held = all(worker.lock for worker in workers)
    if held and not away:
        yield (
            "warning",
            f"locks: they work, but every worker was on this host; runs are kept apart by '{lock_mode(store)}'",
        )
        return
    write_mode(store, "shared" if held else "lease")
    if held:
        yield "ok", "locks: a lock that is held here is seen by workers on other hosts"
    else:
        yield (
            "warning",
            (
                "locks: a lock that is held here is not seen by workers; runs are kept apart by a lease with "
                "heartbeats, and the run of a node that vanishes is continued two minutes later"
            ),
        )


def _clocks(workers: Sequence[Probed], began: float, ended: float) -> Iterator[Finding]:
    apart = max(max(began - worker.clock, worker.clock - ended, 0.0) for worker in workers)
    level: Level = "ok" if apart < CLOCK_SECONDS else "warning"
    yield level, f"clocks: workers differ from this host by {apart:.0f} s"


def _same(what: str, found: Sequence[object], here: object) -> Iterator[Finding]:
    assert isinstance(here, dict)
    different = sorted(
        {
            f"{name} is {table.get(name, 'missing')} on a worker and {value or 'missing'} here"
            for table in found
            if isinstance(table, dict)
            for name, value in here.items()
            if table.get(name, "missing") != (value or "missing")
        }
    )
    yield from (("problem", f"{what}: {text}") for text in different)
    if not different:
        yield "ok", f"{what}: the same on workers and here"


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
