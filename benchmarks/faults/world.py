"""The small world the campaign plays in: a folder of images, two methods, one suite."""

from __future__ import annotations

import io
import shutil
import struct
import zlib
from pathlib import Path

import numpy as np

from benchmarks.faults.tool import Tool

SMALL = ("--preset", "smoke", "--set", "image_size=32", "--quiet", "--protocol", "half")
KMEANS = ("run", "--method", "ss-kmeans", "--dataset", "folder:images", *SMALL)
SIMGCD = ("run", "--method", "simgcd", "--dataset", "folder:images", *SMALL, "--set", "batch_size=16")
SECOND_SEED = (*SIMGCD, "--seed", "1")
PREPARE = ("data", "prepare", "folder:images", "--image-size", "32")

SUITE = """title = "campaign"
protocol = "half"
[presets.smoke]
seeds = [0]
[presets.smoke.set]
image_size = 32
[[columns]]
dataset = "folder:images"
[[rows]]
method = "ss-kmeans"
[[rows]]
method = "kmeans"
[[rows]]
method = "simgcd"
set = { batch_size = 16 }
"""


def png(pixels: np.ndarray) -> bytes:
    """An 8-bit RGB PNG, written without an imaging library."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + pixels[row].tobytes() for row in range(height))

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    out = io.BytesIO(b"\x89PNG\r\n\x1a\n")
    out.seek(0, io.SEEK_END)
    out.write(chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)))
    out.write(chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    return out.getvalue()


def make_images(folder: Path, classes: int = 4, count: int = 16) -> None:
    """Class folders of coloured noise that a method can tell apart."""
    rng = np.random.default_rng(0)
    for label in range(classes):
        place = folder / f"class{label}"
        place.mkdir(parents=True, exist_ok=True)
        colour = rng.integers(60, 200, 3)
        for number in range(count):
            pixels = np.clip(colour + rng.normal(0, 20, (40, 40, 3)), 0, 255).astype(np.uint8)
            (place / f"{number:03d}.png").write_bytes(png(pixels))


def suite_file(home: Path) -> str:
    """The suite's file in a tool's home, by its name there."""
    (home / "campaign.toml").write_text(SUITE)
    return "campaign.toml"


def make_worlds(command: list[str] | None, scratch: Path) -> tuple[Tool, Tool, Tool]:
    """Tools with nothing done, with everything prepared, and with finished runs."""
    empty = Tool(command, scratch / "empty")
    # Next to the homes, not in them: what is remembered of a file holds only while the file is the same one.
    make_images(scratch / "images")
    (empty.home / "images").symlink_to(scratch / "images")
    suite_file(empty.home)
    prepared = empty.copy(scratch / "prepared")
    for arguments in (KMEANS, SIMGCD):  # fills the caches
        answer = prepared.call(*arguments)
        if answer.code != 0:
            raise SystemExit(f"the tool does not work here: {answer.err.strip()[-500:]}")
    finished = prepared.copy(scratch / "finished")
    for path in prepared.runs.glob("*"):
        _remove(path)
    finished.call(*KMEANS, "--seed", "1")
    return empty, prepared, finished


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
