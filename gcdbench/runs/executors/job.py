"""One job, done here: what every executor calls in the end, wherever it has brought the job."""

from __future__ import annotations

import os

from gcdbench.core.errors import GCDBenchError, PeerLost
from gcdbench.plugins.manager import get_manager
from gcdbench.runs.directory import RunBusy
from gcdbench.runs.events import ignore
from gcdbench.runs.execution import Execution
from gcdbench.runs.executors.arrival import AUTO, on_arrival
from gcdbench.runs.executors.base import EventListener, Job, Outcome
from gcdbench.runs.executors.queue import INTERRUPTED
from gcdbench.runs.plan import make_plan
from gcdbench.runs.runner import execute


def run_job(job: Job, listener: EventListener = ignore) -> Outcome:
    """Do the run in this process, and tell ``listener`` all of its events and, last, its outcome.

    Whatever a method raises becomes the outcome of this job only. Ctrl-C (KeyboardInterrupt) passes through, after the
    run was marked as interrupted: it means that no further job is wanted.
    """
    manager = get_manager()
    try:
        plan = make_plan(job.request, manager)
        placement = on_arrival(job.placement, os.environ) if job.placement.device == AUTO else job.placement
        result = execute(Execution(plan=plan, placement=placement, manager=manager, listener=listener))
        outcome = Outcome(job=job, path=str(result.directory.path), reused=result.reused)
    except RunBusy as error:
        outcome = Outcome(job=job, error=error.message, busy=True)
    except PeerLost:  # a node of several was lost: the run can continue
        outcome = Outcome(job=job, error=INTERRUPTED)
    except GCDBenchError as error:
        outcome = Outcome(job=job, error=error.message)
    except Exception as error:
        outcome = Outcome(job=job, error=manager.explain(error))
    listener(outcome.event())
    return outcome
