"""Commands of the tool as processes: a new interpreter each, or forks of a process that has the libraries loaded.

Starting Python and loading torch takes three times as long as the smallest run itself. A campaign of hundreds of
commands therefore loads the third-party libraries once (never a module of gcdbench) and forks: the child takes its
own session, folder, environment and output, and calls the entry point of the command line as a console script does.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

TICK = 0.01
"""Seconds between two looks at a process."""
LIBRARIES = (
    "numpy", "torch", "sklearn.cluster", "scipy.optimize", "scipy.spatial", "scipy.stats", "pandas", "PIL.Image",
    "safetensors.torch", "click", "rich.console", "jinja2", "platformdirs", "pluggy", "psutil", "tomli_w", "filelock",
    "xxhash", "threadpoolctl", "ctypes", "sqlite3", "zipfile", "tomllib",
)  # fmt: skip


def load_libraries() -> None:
    """Load what the commands will need, where it is installed."""
    for name in LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)


class Process:
    """A running command with its output in two files; the leader of a session of its own."""

    def __init__(
        self, command: Sequence[str] | None, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> None:
        self.out_file, self.err_file = (folder / f".{name}-{time.monotonic_ns()}" for name in ("out", "err"))
        self.returncode: int | None = None
        if command is None:
            self.pid = self._fork(arguments, folder, environment)
        else:
            with self.out_file.open("wb") as out, self.err_file.open("wb") as err:
                self.pid = subprocess.Popen(
                    [*command, *arguments], cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL,
                    stdout=out, stderr=err, start_new_session=True,
                ).pid  # fmt: skip

    def _fork(self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> int:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                os.chdir(folder)
                for number, file, mode in (
                    (0, Path(os.devnull), os.O_RDONLY),
                    (1, self.out_file, os.O_WRONLY | os.O_CREAT),
                    (2, self.err_file, os.O_WRONLY | os.O_CREAT),
                ):
                    os.dup2(os.open(file, mode, 0o600), number)
                os.closerange(3, 256)
                os.environ.clear()
                os.environ.update(environment)
                _enter(arguments)
            finally:
                os._exit(70)
        return pid

    def poll(self) -> int | None:
        """The exit code (negative: the signal that ended it), or None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, patience: float) -> int | None:
        """The exit code, or None when it still runs after ``patience`` seconds.

        Time in which this process was itself stopped does not count, so that a campaign may be paused.
        """
        for _ in range(round(patience / TICK)):
            if self.poll() is not None:
                return self.returncode
            time.sleep(TICK)
        return self.poll()

    def kill(self) -> None:
        """End it and everything in its session's group, at once."""
        if self.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        while self.poll() is None:
            time.sleep(TICK)

    def output(self) -> tuple[str, str]:
        """What it said, after its end; the files are removed."""
        files = (self.out_file, self.err_file)
        out, err = (file.read_text(errors="replace") if file.is_file() else "" for file in files)
        for file in files:
            file.unlink(missing_ok=True)
        return out, err


def _enter(arguments: Sequence[str]) -> NoReturn:
    """Behave as the console script ``gcdbench`` does, in a forked child."""
    sys.argv = ["gcdbench", *arguments]
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in ((0, "r"), (1, "w"), (2, "w")))
    code: object = 0
    try:
        code = importlib.import_module("gcdbench.cli.main").main()
    except SystemExit as left:
        code = left.code
    except BaseException:  # as the interpreter does with what nobody caught
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))
