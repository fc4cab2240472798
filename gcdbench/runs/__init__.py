"""One run from request to record: plan, runner, evaluation, run directory, index, archive, executors."""
