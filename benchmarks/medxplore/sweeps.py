"""Continue every sweep of the study where the stored runs end, in the order in which they were planned.

python -m benchmarks.medxplore.sweeps [--dry-run] [-j 2] [--threads 1]

Needs ``GCDBENCH_DATA``. A sweep is stopped by Ctrl-C; the same command continues. Weights, embeddings and checkpoints
that runs leave behind are not part of the evidence, and .gitignore keeps them out.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from benchmarks.medxplore.places import ROOT, RUNS

SWEEPS: tuple[tuple[str, ...], ...] = (
    ("medxplore/screening", "--dataset", "phantom"),
    ("medxplore/screening", "--dataset", "pbc", "--seeds", "1"),
    ("medxplore/main", "--dataset", "kvasir"),
    ("medxplore/main", "--dataset", "pbc"),
    ("medxplore/confirmation",),
    ("medxplore/regime-labels",),
    ("medxplore/regime",),
    ("medxplore/regime-old-classes",),
    ("medxplore/networks",),
)


def main() -> None:
    """Run the sweeps one after another; one that fails does not stop the others."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.medxplore.sweeps", description=__doc__.splitlines()[0])
    parser.add_argument("--dry-run", action="store_true", help="show what is missing, run nothing")
    parser.add_argument("-j", "--parallel", default="2", help="runs at a time (default: 2)")
    parser.add_argument("--threads", default="1", help="threads of each run (default: 1)")
    parser.add_argument("--runs", default=str(RUNS), help="where runs are (default: this study's)")
    options = parser.parse_args()
    failed = 0
    for sweep in SWEEPS:
        command = [sys.executable, "-m", "gcdbench", "sweep", *sweep, "--preset", "laptop", "--runs", options.runs]
        command += ["-j", options.parallel, "--threads", options.threads, *(["--dry-run"] if options.dry_run else [])]
        failed += subprocess.run(command, cwd=ROOT, check=False).returncode != 0
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
