"""A real SLURM on one host: munged, slurmctld and two slurmd in a network namespace of their own."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.clusters.namespaces import Namespace, namespace

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "srun", "sinfo", "scancel")
ADDRESS = "10.211.0.1"
"""On ``lo``, but not 127.x: SLURM does not register nodes at loopback addresses."""
NODES = ("n1", "n2")
CONFIGURATION = """
ClusterName=gcd
SlurmctldHost={host}({address})
SlurmctldPort=17817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=10
InactiveLimit=0
KillWait=5
MinJobAge=4
BatchStartTimeout=5
MaxJobCount={max_jobs}
MaxArraySize=1001
SlurmdParameters=config_overrides
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class SlurmCluster:
    """Two nodes, n1 and n2, of ``cpus`` processors each."""

    def __init__(self, folder: Path, space: Namespace, *, max_jobs: int, cpus: int) -> None:
        self.folder = folder
        self.space = space
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "OMP_NUM_THREADS": "1"}
        host = socket.gethostname().partition(".")[0]
        nodes = "\n".join(
            f"NodeName={node} NodeHostname={host} NodeAddr={ADDRESS} Port={17001 + i} CPUs={cpus} RealMemory=4000"
            for i, node in enumerate(NODES)
        )
        text = CONFIGURATION.format(host=host, address=ADDRESS, folder=folder, max_jobs=max_jobs, nodes=nodes)
        (folder / "slurm.conf").write_text(text)
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")

    def start(self) -> None:
        """Start all daemons, and wait until both nodes take jobs."""
        self.space.call("ip", "addr", "add", f"{ADDRESS}/32", "dev", "lo")
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        files = {
            "socket": "munge.socket",
            "pid-file": "munged.pid",
            "log-file": "munged.log",
            "seed-file": "munge.seed",
        }
        options = [f"--{name}={self.folder / file}" for name, file in files.items()]
        self._call("munged", "--force", f"--key-file={key}", *options)
        self._call("slurmctld", "-f", str(self.folder / "slurm.conf"), "-c")
        for node in NODES:
            self.start_node(node)
        wait_for(lambda: self._call("sinfo", "-h", "-N", "-o", "%T").split() == ["idle", "idle"], "two idle nodes")

    def start_node(self, node: str) -> None:
        """Start the daemon of one node."""
        self._call("slurmd", "-f", str(self.folder / "slurm.conf"), "-N", node)

    def stop(self) -> None:
        """End everything that was started, by its process id, what runs on the nodes first."""
        for node in NODES:
            self.kill_node(node)
        for name in ("slurmctld", "munged"):
            self._kill_by_file(self.folder / f"{name}.pid", signal.SIGTERM)

    def kill_node(self, node: str) -> None:
        """As a power failure: the daemon, its steps and whatever runs in them, at once and with SIGKILL."""
        doomed = [process for process in psutil.process_iter() if self._is_on(node, process)]
        self._kill_by_file(self.folder / f"slurmd.{node}.pid", signal.SIGKILL)
        for process in doomed:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def _is_on(self, node: str, process: psutil.Process) -> bool:
        """Steps of our jobs have the node in their environment; slurmstepd itself is the parent of such a process."""
        with suppress(psutil.Error):
            mine = [process, *process.children()] if process.name() == "slurmstepd" else [process]
            for one in mine:
                environment = one.environ()
                same = environment.get("SLURM_CONF") == self.environment["SLURM_CONF"]
                if same and environment.get("SLURMD_NODENAME") == node:
                    return True
        return False

    def _kill_by_file(self, file: Path, number: int) -> None:
        with suppress(OSError, ValueError):
            pid = int(file.read_text())
            os.kill(pid, number)
            with suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
                psutil.Process(pid).wait(timeout=10)
            file.unlink(missing_ok=True)

    def call(self, *words: str) -> str:
        """A command of SLURM, as a user types it; what it prints."""
        return self._call(*words)

    def start_command(self, *words: str, cwd: Path, log: Path, **more: str) -> subprocess.Popen[bytes]:
        """Start a command on the 'login node'; its output goes to ``log``."""
        with log.open("ab") as output:
            return subprocess.Popen(
                self.space.command(*words),
                env={**self.environment, **more},
                cwd=cwd,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def queue(self) -> list[tuple[str, str, str]]:
        """(job, state, node) of everything SLURM has."""
        lines = self._call("squeue", "-h", "-r", "-o", "%i %T %N").splitlines()
        return [(*line.split(), "")[:3] for line in lines]  # type: ignore[misc]

    def _call(self, *words: str) -> str:
        done = subprocess.run(
            self.space.command(*words), env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout


def wait_for(condition: Callable[[], object], what: str, seconds: float = 120.0) -> None:
    """Wait until ``condition`` holds; a test fails that waits too long."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"waited {seconds:.0f} s for {what}"
        time.sleep(0.1)


@contextmanager
def slurm_cluster(folder: Path, *, max_jobs: int = 1000, cpus: int = 1) -> Iterator[SlurmCluster]:
    """A cluster that is up; everything of it is ended afterwards."""
    for name in ("state", "spool.n1", "spool.n2"):
        (folder / name).mkdir(parents=True)
    with namespace("slurm") as space:
        cluster = SlurmCluster(folder, space, max_jobs=max_jobs, cpus=cpus)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
