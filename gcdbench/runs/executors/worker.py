"""A worker process: reads one job as JSON from its standard input, writes events as JSON lines, then the outcome."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from gcdbench.core.errors import GCDBenchError
from gcdbench.plugins.manager import get_manager
from gcdbench.runs.executors.wire import decode_job
from gcdbench.runs.plan import make_plan
from gcdbench.runs.runner import execute


def _emit(event: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Execute the job; the exit code is 0 when it is done."""
    job = decode_job(sys.stdin.readline())
    try:
        manager = get_manager()
        result = execute(make_plan(job.request, manager), job.placement, manager, _emit)
    except KeyboardInterrupt:
        _emit({"type": "outcome", "error": "interrupted"})
        return 130
    except GCDBenchError as error:
        _emit({"type": "outcome", "error": error.message})
        return error.exit_code
    except Exception as error:  # whatever a method raises becomes the outcome of this job only
        _emit({"type": "outcome", "error": f"{type(error).__name__}: {error}"})
        return 1
    _emit({"type": "outcome", "path": str(result.directory.path), "reused": result.reused, "error": ""})
    return 0


if __name__ == "__main__":
    sys.exit(main())
