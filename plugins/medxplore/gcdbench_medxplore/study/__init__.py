"""The study of MedXplore that goes with this package: suites (``*.toml``), the numbers its paper reports
(``reported/*.csv``) and the paper's preset. What came out of it is in ``benchmarks/medxplore`` of the repository.
"""

from __future__ import annotations

from pathlib import Path

from gcdbench.plugins import PresetSpec, SuiteSpec

STUDY = "medxplore"
FOLDER = Path(__file__).resolve().parent

PAPER = PresetSpec(
    name="paper",
    api=2,
    summary="the paper's setting: ResNet-18, 224 px, 200 epochs, fresh augmentation in every step",
    settings={"backbone": "resnet18", "image_size": 224, "views": "online", "epochs": 200},
)
"""As far as the paper states its setting. Written out, because it must not follow a preset of gcdbench."""


def suites() -> list[SuiteSpec]:
    """One suite for each TOML file."""
    return [SuiteSpec(name=f"{STUDY}/{path.stem}", api=2, file=str(path)) for path in sorted(FOLDER.glob("*.toml"))]
