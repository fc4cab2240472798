"""Commands as a page has them, at the settings of a smoke test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(?P<kind>sh|console|python|toml)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
SMALL = {"run": "--dataset-set n_per_class=8"}
"""Options that a verb gets where it works on phantom images."""


def blocks(page: str) -> list[tuple[str, str]]:
    """Kind and text of every block of docs/``page``, in order."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [(found["kind"], found["text"]) for found in BLOCK.finditer(text)]


def commands(page: str) -> list[str]:
    """The lines of all shell blocks: ``sh`` as they are, of ``console`` those behind a prompt."""
    lines: list[str] = []
    for kind, text in blocks(page):
        text = text.replace("\\\n", " ")
        if kind == "sh":
            lines += text.strip().splitlines()
        elif kind == "console":
            lines += [line[2:] for line in text.splitlines() if line.startswith("$ ")]
    return lines


def commands_in_sentences(page: str) -> list[str]:
    """Whole commands of gcdbench that stand between words, without those that a reader has to fill in."""
    text = BLOCK.sub("", (ROOT / "docs" / page).read_text(encoding="utf-8"))
    return [found for found in re.findall(r"`(gcdbench [^`]+)`", text) if not re.search(r"\b[A-Z]{2,}\b|…|<", found)]


def at_smoke_settings(line: str) -> str:
    """The same command on few small images: nothing else of it is changed."""
    words = line.split()
    verb = next((word for word in words[1:] if not word.startswith("-") and not word.endswith(".py")), "")
    line = line.replace("--preset laptop", "--preset smoke")
    if verb in ("run", "discover", "sweep") and "--preset" not in line:
        line += " --preset smoke"
    return f"{line} {SMALL[verb]}" if verb in SMALL and "phantom" in line else line


def shell(lines: list[str], folder: Path, *, programs: Path = Path(sys.executable).parent, **more: str) -> str:
    """Run lines in one shell, as a reader would; what they printed. ``more`` is added to the environment."""
    environment = {
        **os.environ,
        "GCDBENCH_CACHE": str(folder / "cache"),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        **more,
    }
    script = "\n".join(["set -eu", *lines])
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=1700
    )
    assert done.returncode == 0, f"{script}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout
