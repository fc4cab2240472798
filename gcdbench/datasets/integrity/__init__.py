"""Checks that a benchmark owes its users: against the card (verify), of the data itself (audit), before a run."""

from __future__ import annotations

from gcdbench.datasets.integrity.blocking import blocking_issues
from gcdbench.datasets.integrity.leaks import TestLeak, find_leak
from gcdbench.datasets.integrity.truth import require_truth

__all__ = ["TestLeak", "blocking_issues", "find_leak", "require_truth"]
