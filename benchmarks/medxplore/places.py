"""Where the things of this study are."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RUNS = HERE / "runs"
TABLES = HERE / "tables"
FIGURES = HERE / "figures"
TEMPLATES = HERE / "templates"
TOKENS = HERE / "tokens.json"
README = ROOT / "README.md"
REPORT, LEDGER, NOTEBOOK = HERE / "report.md", HERE / "ledger.md", HERE / "notebook.md"
