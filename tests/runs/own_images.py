"""A small dataset of a person's own, in the layouts that a discovery and a run take."""

from __future__ import annotations

import csv
import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

OLD, NEW = ("oesophagus", "polyps"), ("cecum", "ulcer")
"""Known classes do not come first in the alphabet."""
PER_CLASS = 8
SMALL = ("--preset", "smoke", "--set", "image_size=64", "--set", "epochs=1", "--workers", "1", "-q")


@dataclass(frozen=True, kw_only=True)
class OwnImages:
    """whole: every image in the folder of its class; labelled, unlabelled: the same images, in two folders.

    truth: path and label of the unlabelled ones. Names in ``unlabelled`` say nothing.
    """

    whole: Path
    labelled: Path
    unlabelled: Path
    truth: Path


def draw_classes(root: Path, classes: tuple[str, ...] = (*OLD, *NEW), per_class: int = PER_CLASS) -> Path:
    """A folder of class folders; images of one class share a colour and a coarse pattern."""
    rng = np.random.default_rng(7)
    for name in classes:
        (root / name).mkdir(parents=True)
        pattern = rng.integers(0, 200, (4, 4, 3))
        for number in range(per_class):
            pixels = (pattern + rng.integers(0, 56, pattern.shape)).astype(np.uint8)
            Image.fromarray(pixels).resize((80, 70)).save(root / name / f"{name} {number}.png")
    return root


def divide(whole: Path, roles: dict[str, str], root: Path) -> OwnImages:
    """Two folders from one; ``roles`` maps the sha256 of a file's content to "labelled" or "unlabelled"."""
    truth = root / "truth.csv"
    (root / "pile" / "a").mkdir(parents=True)
    rows = [("path", "label")]
    for file in sorted(path for path in whole.rglob("*") if path.is_file()):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        if roles[digest] == "labelled":
            target = root / "known" / file.parent.name / f"{digest[:6]}{file.suffix}"
        else:
            target = root / "pile" / "a" / f"{digest[6:14]}{file.suffix}"
            rows.append((f"pile/a/{target.name}", file.parent.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    with truth.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(rows)
    return OwnImages(whole=whole, labelled=root / "known", unlabelled=root / "pile", truth=truth)
