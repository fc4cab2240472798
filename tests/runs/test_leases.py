"""A store whose locks do not reach other hosts: one writer all the same, and a dead one is followed by another."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from gcdbench.plugins.manager import PluginManager
from gcdbench.runs import directory, leases
from gcdbench.runs.attempt import Attempt
from gcdbench.runs.directory import RunBusy, RunDirectory
from gcdbench.runs.leases import Lease, age_of, lock_mode, locks_by_mount, mount_of, write_mode
from gcdbench.runs.record import Scores
from gcdbench.runs.request import Request
from gcdbench.testing.stored import FakeRun, write_fake_run

MOUNTS = """
21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 21 0:40 / /home rw,relatime - nfs4 server:/home rw,vers=4.2,local_lock=none
31 21 0:41 / /old rw,relatime - nfs server:/old rw,vers=3,nolock,local_lock=all
32 21 0:42 / /scratch rw - lustre mgs:/scratch rw,flock
33 21 0:43 / /scratch/fast rw - lustre mgs:/fast rw,lazystatfs
34 21 0:44 / /remote rw - fuse.sshfs user@host: rw
35 21 0:45 / /with\\040space rw - xfs /dev/sdb rw
"""


@pytest.mark.parametrize(
    ("path", "kind", "mode"),
    [
        ("/tmp/runs", "ext4", "shared"),
        ("/home/me/runs", "nfs4", "shared"),
        ("/old/runs", "nfs", "lease"),
        ("/scratch/runs", "lustre", "shared"),
        ("/scratch/fast/runs", "lustre", "lease"),
        ("/remote/runs", "fuse.sshfs", "lease"),
        ("/with space/runs", "xfs", "shared"),
    ],
)
def test_a_file_system_is_trusted_only_where_its_locks_reach_every_host(path: str, kind: str, mode: str) -> None:
    mount = mount_of(Path(path), MOUNTS)
    assert mount.kind == kind
    assert locks_by_mount(mount) == mode


def test_the_mark_of_a_store_counts_more_than_its_file_system(tmp_path: Path) -> None:
    for mode in ("lease", "shared"):
        write_mode(tmp_path, mode)
        assert lock_mode(tmp_path) == mode


class Host:
    """One of several hosts that see the same files, but not each other's locks."""

    def __init__(self, name: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.name = name
        self.run = RunDirectory(path)
        self._patch = monkeypatch
        self.lock_class: type[FileLock] = FileLock

    def enter(self) -> RunDirectory:
        """From now on this process is on this host."""
        self._patch.setattr(directory, "this_host", lambda: self.name)
        lock = self.lock_class(self.run.path / f"lock-of-{self.name}")
        self._patch.setattr(RunDirectory, "_lock", lambda _: lock)
        return self.run


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Host, Host]:
    write_mode(tmp_path, "lease")
    monkeypatch.setattr(leases, "SETTLE_SECONDS", 0.01)
    path = tmp_path / "phantom" / "kmeans" / "0123"
    return Host("one", path, monkeypatch), Host("two", path, monkeypatch)


def test_a_run_has_one_writer_although_each_host_gets_its_lock(hosts: tuple[Host, Host]) -> None:
    one, two = hosts
    with one.enter().writing():
        run = two.enter()
        with pytest.raises(RunBusy), run.writing():
            pass
        one.enter()
    with two.enter().writing():  # given back: nobody waits
        pass


def test_a_writer_that_fell_silent_is_followed_by_another_and_notices(tmp_path: Path, hosts: tuple[Host, Host]) -> None:
    one, two = hosts
    file = one.run.path / "heartbeat"
    file.parent.mkdir(parents=True)
    dead = Lease(file, host="one", stale_seconds=60)
    assert dead.take(locked_here=True)
    with pytest.raises(RunBusy), two.enter().writing():
        pass
    then = file.stat().st_mtime - directory.STALE_SECONDS - 1
    os.utime(file, (then, then))
    with two.enter().writing():
        assert not dead.held()
        lost: list[bool] = []
        dead.beat(lambda: lost.append(True))
        assert lost == [True]
    assert not file.exists()


def test_the_same_host_need_not_wait_for_a_lease_whose_process_is_gone(hosts: tuple[Host, Host]) -> None:
    one, _ = hosts
    file = one.run.path / "heartbeat"
    file.parent.mkdir(parents=True)
    assert Lease(file, host="one", stale_seconds=60).take(locked_here=True)
    with one.enter().writing():
        pass


def test_without_any_lock_a_living_process_of_this_host_keeps_its_lease(tmp_path: Path) -> None:
    first, second = (Lease(tmp_path / "heartbeat", host="one", stale_seconds=60) for _ in range(2))
    assert first.take(locked_here=False)
    assert not second.take(locked_here=False)
    assert first.held()


@pytest.fixture(params=[signal.default_int_handler, signal.SIG_IGN], ids=["terminal", "background"])
def ctrl_c(request: pytest.FixtureRequest) -> Iterator[None]:
    """A shell lets what it starts in the background ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, request.param)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_a_run_that_was_taken_over_is_not_written_by_its_first_writer_any_more(
    hosts: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = hosts
    monkeypatch.setattr(directory, "HEARTBEAT_SECONDS", 0.01)
    file = one.run.path / "heartbeat"
    run = one.enter()
    with contextlib.suppress(KeyboardInterrupt), run.writing():
        file.write_text("two 1 0123456789abcdef")
        for _ in range(100):  # the heartbeat interrupts this
            time.sleep(0.1)
        pytest.fail("nobody was interrupted")
    assert run.taken_over
    assert file.read_text().startswith("two"), "the lease of the other was given back"
    record = RunDirectory(
        write_fake_run(
            one.run.path.parents[2],
            FakeRun(request=Request(method="kmeans", dataset="phantom")),
            PluginManager(points=[]),
        ).path
    )
    attempt = Attempt(record, record.record())
    before = record.record_path.read_bytes()
    record.taken_over = True
    attempt.interrupt()
    attempt.fail("an error", "")
    with pytest.raises(KeyboardInterrupt):
        attempt.finish(attempt.record, Scores())
    assert record.record_path.read_bytes() == before
    assert not attempt.home.exists() or not list(attempt.home.glob("*.json"))


def test_a_lock_file_that_only_exists_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lustre without ``flock`` answers ENOSYS; a killed process must leave nothing behind that looks held."""
    import fcntl

    def no_flock(*arguments: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_flock)
    write_mode(tmp_path, "lease")
    run = RunDirectory(tmp_path / "phantom" / "kmeans" / "0123")
    run.path.mkdir(parents=True)
    for _ in range(2):
        with run.writing():
            assert (run.path / "heartbeat").read_text()
    # As a process that was killed on another host leaves it.
    (run.path / "lock").write_text("1\nanother-host\n")
    with run.writing():
        pass


def test_ages_are_told_by_the_clock_of_the_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "heartbeat"
    assert age_of(file) == float("inf")
    file.touch()
    monkeypatch.setattr(time, "time", lambda: 0.0)  # a host whose clock is far behind
    assert abs(age_of(file)) < 60
    assert [entry.name for entry in tmp_path.iterdir()] == ["heartbeat"]


def test_a_file_system_without_locks_has_one_writer_all_the_same(
    hosts: tuple[Host, Host],
) -> None:
    one, two = hosts

    class NoLock(FileLock):
        def acquire(self, *arguments: object, **options: object) -> None:  # type: ignore[override]
            raise NotImplementedError("no flock here")

    for host in (one, two):
        host.lock_class = NoLock
    with one.enter().writing():
        for host in (two, one):
            with pytest.raises(RunBusy), host.enter().writing():
                pass
        one.enter()
    with two.enter().writing():
        pass
