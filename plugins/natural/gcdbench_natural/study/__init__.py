"""Suites (``*.toml``) and the numbers that papers report (``reported/*.csv``)."""

from __future__ import annotations

from pathlib import Path

from gcdbench.plugins import SuiteSpec

STUDY = "natural"
FOLDER = Path(__file__).resolve().parent


def suites() -> list[SuiteSpec]:
    """One suite for each TOML file."""
    return [SuiteSpec(name=f"{STUDY}/{path.stem}", api=2, file=str(path)) for path in sorted(FOLDER.glob("*.toml"))]
