"""The page on the architecture walks through code that exists, and the house has the rooms it names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^\d+\. `([^`]+)` `([^`]+)`", PAGE, re.M)
IGNORED = {"__pycache__"}


def defined(file: Path) -> set[str]:
    """Functions, classes and their methods, as ``name`` or ``Class.name``."""
    found = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{item.name}" for item in node.body if isinstance(item, ast.FunctionDef)}
    return found


def test_every_step_is_a_function_that_exists() -> None:
    assert 0 < len(STEPS) <= 25
    missing = [(file, name) for file, name in STEPS if name not in defined(ROOT / file)]
    assert not missing


def test_the_house_has_few_rooms_and_the_page_names_each() -> None:
    entries = [path for path in (ROOT / "gcdbench").iterdir() if path.name not in IGNORED]
    folders = {path.name for path in entries if path.is_dir()}
    assert len(entries) <= 18
    assert len(folders) <= 14
    assert folders == set(re.findall(r"^\| `(\w+)/`", PAGE, re.M))
