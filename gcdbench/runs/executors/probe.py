"""What a worker is like, found out on the worker: ``python -m gcdbench.runs.executors.probe FOLDER``.

Prints one line of JSON: host, clock, versions, weights, and what it sees of the store in FOLDER, where whoever asks
holds a lock meanwhile.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import Timeout

from gcdbench.core.errors import GCDBenchError
from gcdbench.core.locks import system_lock
from gcdbench.runs.strict_json import Fields, parse_table

TOKEN, LOCK = "token", "lock"
"""Files in the folder of a probe: what the asker has written, and what it has locked."""


@dataclass(frozen=True, kw_only=True)
class Probed:
    """One worker. token: what it read in the store, "" where it sees no store; lock: whether it saw the lock as held.

    clock: its time in seconds since 1970.
    """

    host: str
    clock: float
    token: str
    lock: bool
    writes: bool
    versions: Mapping[str, str]
    weights: Mapping[str, str]


def probe(folder: Path) -> Probed:
    """Look at this host and at the store."""
    from gcdbench.runs.directory import this_host

    try:
        token = (folder / TOKEN).read_text()
    except OSError:
        token = ""
    return Probed(
        host=this_host(),
        clock=time.time(),
        token=token,
        lock=bool(token) and _is_held(folder / LOCK),
        writes=bool(token) and _can_write(folder),
        versions=versions_here(),
        weights=weights_here(),
    )


def versions_here() -> dict[str, str]:
    """What may change a number: packages, plugins, and the commit of gcdbench where it runs from a checkout."""
    from gcdbench.plugins.manager import get_manager
    from gcdbench.runs.environment import git_state, package_versions

    packages = {name: version or "missing" for name, version in package_versions().items()}
    plugins = {f"plugin {record.distribution}": record.version for record in get_manager().records() if record.ok}
    commit, _ = git_state()
    return {**packages, **plugins, **({"commit of gcdbench": commit} if commit else {})}


def weights_here() -> dict[str, str]:
    """Digest of the weights of every backbone that can be told without loading it."""
    from gcdbench.plugins.manager import get_manager
    from gcdbench.plugins.specs import BackboneSpec

    found = {}
    for spec in get_manager().specs("backbones"):
        if isinstance(spec, BackboneSpec) and spec.identify is not None and not spec.takes_argument:
            try:
                # A look must not download.
                found[spec.name] = spec.weights_sha256(None, load=False)
            except (GCDBenchError, ImportError):
                found[spec.name] = "missing"
    return found


def _is_held(file: Path) -> bool:
    lock = system_lock(file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except (OSError, NotImplementedError):
        return False
    lock.release()
    return False


def _can_write(folder: Path) -> bool:
    from gcdbench.runs.directory import this_host

    file = folder / f"written-by-{this_host()}-{time.time_ns()}"
    try:
        file.write_text("")
    except OSError:
        return False
    return True


def parse_probed(line: str) -> Probed | None:
    """The inverse of what is printed; None for a line that is something else."""
    try:
        found = Fields(parse_table(line.encode(), "the probe of a worker"), "the probe of a worker")
        return Probed(
            host=found.text("host"),
            clock=found.number("clock"),
            token=found.text("token"),
            lock=found.flag("lock"),
            writes=found.flag("writes"),
            versions=found.text_table("versions"),
            weights=found.text_table("weights"),
        )
    except GCDBenchError:
        return None


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(probe(Path(sys.argv[1])))) + "\n")
