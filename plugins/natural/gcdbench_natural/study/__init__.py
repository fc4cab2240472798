"""Suites (``*.toml``) and the numbers that papers report (``reported/*.csv``)."""

from __future__ import annotations

from pathlib import Path

from gcdbench.plugins import PresetSpec, SuiteSpec

STUDY = "natural"
FOLDER = Path(__file__).resolve().parent

LITERATURE = PresetSpec(
    name="dino-vitb16",
    api=2,
    summary="the literature's setting: DINO's ViT-B/16, its last block trained, 224 px, 200 epochs, fresh views",
    settings={
        "backbone": "dino-vitb16",
        "image_size": 224,
        "views": "online",
        "augmentation": "geometric",  # published colour jitter has default arguments, and so does nothing
        "epochs": 200,
        "batch_size": 128,
        "lr": 0.1,
        "min_lr_ratio": 1e-3,
        "momentum": 0.9,
        "weight_decay": 5e-5,
    },
)
"""What the published scripts of GCD, SimGCD and LegoGCD share; written out, so that no default can change it."""


def suites() -> list[SuiteSpec]:
    """One suite for each TOML file."""
    return [SuiteSpec(name=f"{STUDY}/{path.stem}", api=2, file=str(path)) for path in sorted(FOLDER.glob("*.toml"))]
