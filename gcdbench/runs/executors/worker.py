"""A worker process: reads one job as JSON from its standard input, writes events as JSON lines, then the outcome."""

from __future__ import annotations

import sys

from gcdbench.core.errors import GCDBenchError
from gcdbench.plugins.manager import get_manager
from gcdbench.runs.events import Event, JobEnded, encode_event
from gcdbench.runs.execution import Execution
from gcdbench.runs.executors.wire import decode_job
from gcdbench.runs.plan import make_plan
from gcdbench.runs.runner import execute


def _emit(event: Event) -> None:
    sys.stdout.write(encode_event(event) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Execute the job; the exit code is 0 when it is done."""
    job = decode_job(sys.stdin.readline())
    try:
        manager = get_manager()
        plan = make_plan(job.request, manager)
        result = execute(Execution(plan=plan, placement=job.placement, manager=manager, listener=_emit))
    except KeyboardInterrupt:
        _emit(JobEnded(error="interrupted"))
        return 130
    except GCDBenchError as error:
        _emit(JobEnded(error=error.message))
        return error.exit_code
    except Exception as error:  # whatever a method raises becomes the outcome of this job only
        _emit(JobEnded(error=f"{type(error).__name__}: {error}"))
        return 1
    _emit(JobEnded(path=str(result.directory.path), reused=result.reused))
    return 0


if __name__ == "__main__":
    sys.exit(main())
