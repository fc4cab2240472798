"""What a run cost, in addition to what it scored: its time, and how many images it was shown."""

from __future__ import annotations

SPENT = ("seconds", "images_seen")
"""Scores that say what a run cost (:attr:`gcdbench.runs.record.Record.spent`); a table gives each a single column."""
