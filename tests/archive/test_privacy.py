"""What leaves the machine holds no name of a file, of a folder or of a patient."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from PIL import Image

from tests.images.dicom_files import dicom_bytes
from tests.runs.own_images import SMALL, draw_classes

Cli = Callable[..., Result]

PATIENT, NAME = "nosferatu", "Hutter^Thomas"
FOLDER, FILE, PILE = "ward-of-doctor-mabuse", "patient-orlac", "pile-of-professor-jordan"
TELLING = (FOLDER, FILE, PILE, "suspected-caligari", "cesare-room-12", "nosferatu", "Hutter^Thomas", "pytest-of")
"""Words that only paths and files of the sides contain; too long to stand in weights by chance."""


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders whose names, file names and, of the unlabelled one, sub-folders tell something."""
    labelled = draw_classes(tmp_path / FOLDER, ("polyps", "ulcer"), 6)
    unlabelled = draw_classes(tmp_path / PILE, ("suspected-caligari", "cesare-room-12"), 6)
    for root in (labelled, unlabelled):
        for number, file in enumerate(sorted(root.rglob("*.png"))):
            pixels = np.asarray(Image.open(file).convert("L")).astype(np.uint16)
            fields = {"PatientID": f"{PATIENT}-{number}", "PatientName": NAME}
            file.with_name(f"{FILE} {number}.dcm").write_bytes(dicom_bytes(pixels, **fields))
            file.unlink()
    return labelled, unlabelled


def require_silent(folder: Path, packed: Path) -> None:
    """No telling word in the model's files, nor in any member of the archive."""
    contents = {file.name: file.read_bytes() for file in folder.glob("model.*")}
    contents |= {file.name: file.read_bytes() for file in folder.glob("auxiliary.*")}
    with zipfile.ZipFile(packed) as archive:
        contents |= {name: name.encode() + archive.read(name) for name in archive.namelist()}
    assert "model.json" in contents
    assert "model.safetensors" in contents
    for name, content in contents.items():
        for word in TELLING:
            assert word.encode() not in content, (name, word)


def test_an_archive_and_a_model_of_a_discovery(cli: Cli, sides: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    given = (
        "--labelled",
        sides[0],
        "--unlabelled",
        sides[1],
        "--k",
        4,
        "-o",
        out,
        "--dataset-set",
        "groups=dicom:PatientID",
    )
    result = cli("discover", *given, *SMALL, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert FILE in (out / "predictions.csv").read_text()  # the words would be found where they are
    packed = tmp_path / "packed.zip"
    exported = cli("export", packed, "--weights")
    assert exported.exit_code == 0, exported.output
    require_silent(Path(told["path"]), packed)
    arrived = tmp_path / "arrived"
    imported = cli("import", packed, "--runs", arrived)
    assert imported.exit_code == 0, imported.output
    assert cli("verify", "--runs", arrived).exit_code == 0


def test_an_archive_of_a_run_on_a_folder_names_no_file(cli: Cli, sides: tuple[Path, Path], tmp_path: Path) -> None:
    result = cli("run", "-m", "kmeans", "-d", f"folder:{sides[0]}", *SMALL)
    assert result.exit_code == 0, result.output
    packed = tmp_path / "packed.zip"
    assert cli("export", packed).exit_code == 0
    with zipfile.ZipFile(packed) as archive:
        for name in archive.namelist():
            for word in (FILE, str(tmp_path), "pytest-of"):
                assert word.encode() not in archive.read(name), (name, word)
    arrived = tmp_path / "arrived"
    assert cli("import", packed, "--runs", arrived).exit_code == 0
    assert cli("verify", "--runs", arrived).exit_code == 0


def test_a_run_that_recorded_file_names_is_not_packed(cli: Cli, sides: tuple[Path, Path], tmp_path: Path) -> None:
    first = next(sides[0].glob("polyps/*.dcm"))
    (sides[0] / "ulcer" / f"{FILE} copy.dcm").write_bytes(first.read_bytes())
    result = cli("run", "-m", "kmeans", "-d", f"folder:{sides[0]}", *SMALL, "--accept-data-issues")
    assert result.exit_code == 0, result.output
    refused = cli("export", tmp_path / "packed.zip")
    assert refused.exit_code
    assert "file names" in refused.stderr
    assert not (tmp_path / "packed.zip").exists()
