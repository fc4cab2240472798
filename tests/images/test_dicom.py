"""DICOM files written by pydicom: windows, rescaling, inversion, colour, and everything that is refused by name."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pydicom = pytest.importorskip("pydicom")

from pydicom.dataset import Dataset  # noqa: E402
from pydicom.encaps import encapsulate  # noqa: E402
from pydicom.sequence import Sequence  # noqa: E402
from pydicom.uid import (  # noqa: E402
    MPEG2MPML,
    JPEG2000Lossless,
    JPEGBaseline8Bit,
    JPEGLosslessSV1,
    JPEGLSLossless,
    RLELossless,
)

from gcdbench.core.errors import DataError  # noqa: E402
from gcdbench.images.decoding import UnreadableImageError  # noqa: E402
from gcdbench.images.deep import decode_deep  # noqa: E402
from gcdbench.splits.manifest import make_split  # noqa: E402
from gcdbench.splits.protocol import Protocol  # noqa: E402
from tests.data.conftest import noise_image  # noqa: E402
from tests.data.loading import opened, refused  # noqa: E402
from tests.images.dicom_files import dicom_bytes, dicom_dataset, encoded  # noqa: E402

RAMP = np.linspace(0, 4095, 4096).reshape(64, 64).astype(np.uint16)


def linear_window(values: np.ndarray, centre: float, width: float) -> np.ndarray:
    """PS3.3 C.11.2.1.2, one value at a time, to 0 .. 255."""
    shown = []
    for x in values.ravel().tolist():
        if x <= centre - 0.5 - (width - 1) / 2:
            shown.append(0.0)
        elif x > centre - 0.5 + (width - 1) / 2:
            shown.append(255.0)
        else:
            shown.append(((x - (centre - 0.5)) / (width - 1) + 0.5) * 255)
    return np.array(shown).reshape(values.shape)


@pytest.mark.parametrize(("centre", "width"), [(2048, 4096), (600, 400), (40, 80), (3000, 2)])
def test_the_first_window_is_applied(centre: int, width: int) -> None:
    pixels = decode_deep(dicom_bytes(RAMP, WindowCenter=[centre, 1], WindowWidth=[width, 7]))
    assert pixels.shape == (64, 64, 3)
    assert (pixels == pixels[..., :1]).all()
    assert np.abs(pixels[..., 0] - linear_window(RAMP, centre, width)).max() <= 0.5 + 1e-6


def test_a_window_is_in_rescaled_units() -> None:
    """Computed tomography: stored 0 .. 4095, shown in Hounsfield units from -1024 on."""
    options = {"RescaleSlope": 1, "RescaleIntercept": -1024, "WindowCenter": 40, "WindowWidth": 400}
    pixels = decode_deep(dicom_bytes(RAMP, **options))
    assert np.abs(pixels[..., 0] - linear_window(RAMP.astype(float) - 1024, 40, 400)).max() <= 0.5 + 1e-6
    units = RAMP.astype(np.int16) - 1024
    signed = decode_deep(dicom_bytes(units, bits=16, signed=True, WindowCenter=40, WindowWidth=400))
    assert np.array_equal(signed, pixels)


def test_the_bright_end_is_dark_in_monochrome1() -> None:
    window = {"WindowCenter": 2048, "WindowWidth": 4096}
    pixels = decode_deep(dicom_bytes(RAMP, **window))
    turned = decode_deep(dicom_bytes(RAMP, PhotometricInterpretation="MONOCHROME1", **window))
    assert np.array_equal(turned, 255 - pixels)


def test_without_a_window_twelve_bits_keep_their_contrast_and_padding_does_not_count() -> None:
    values = np.linspace(1000, 1400, 4096).reshape(64, 64).astype(np.uint16)
    assert np.ptp(decode_deep(dicom_bytes(values)).astype(int)) == 255
    padded = values.copy()
    padded[:16] = 0
    plain, known = decode_deep(dicom_bytes(padded)), decode_deep(dicom_bytes(padded, PixelPaddingValue=0))
    assert np.ptp(plain[16:].astype(int)) < 100
    assert np.ptp(known[16:].astype(int)) > 250


@pytest.mark.parametrize("window", [{"WindowWidth": 0, "WindowCenter": 5}, {"WindowCenter": 5}, {"WindowWidth": ""}])
def test_an_impossible_window_is_no_window(window: dict) -> None:
    assert np.array_equal(decode_deep(dicom_bytes(RAMP, **window)), decode_deep(dicom_bytes(RAMP)))


def test_a_sigmoid_window_and_a_lookup_table() -> None:
    options = {"WindowCenter": 2048, "WindowWidth": 1000, "VOILUTFunction": "SIGMOID"}
    pixels = decode_deep(dicom_bytes(RAMP, **options))
    expected = 255 / (1 + np.exp(-4 * (RAMP.astype(float) - 2048) / 1000))
    assert np.abs(pixels[..., 0] - expected).max() <= 0.51
    item = Dataset()
    item.LUTDescriptor = [4096, 0, 16]
    item.LUTData = (np.sqrt(np.arange(4096) / 4095) * 65535).astype("<u2").tobytes()
    item["LUTData"].VR = "OW"
    pixels = decode_deep(dicom_bytes(RAMP, VOILUTSequence=Sequence([item])))
    assert np.abs(pixels[..., 0] - np.sqrt(RAMP / 4095) * 255).max() <= 0.51


def test_eight_bits_are_what_they_are() -> None:
    grey = np.asarray(noise_image(1).convert("L"))
    assert np.array_equal(decode_deep(dicom_bytes(grey, bits=8))[..., 0], grey)
    colour = np.asarray(noise_image(2))
    assert np.array_equal(decode_deep(dicom_bytes(colour, bits=8)), colour)


def test_luminance_and_chrominance_become_colour() -> None:
    colour = np.asarray(noise_image(2))
    stored = np.asarray(noise_image(2).convert("YCbCr"))
    pixels = decode_deep(dicom_bytes(stored, bits=8, PhotometricInterpretation="YBR_FULL"))
    assert np.abs(pixels.astype(int) - colour.astype(int)).max() <= 3


def test_a_palette_is_looked_up() -> None:
    indices = np.arange(256, dtype=np.uint8).reshape(16, 16)
    made = dicom_dataset(indices, bits=8, PhotometricInterpretation="PALETTE COLOR")
    for number, name in enumerate(("Red", "Green", "Blue")):
        table = np.roll(np.arange(256, dtype="<u2") * 257, 10 * number)
        setattr(made, f"{name}PaletteColorLookupTableDescriptor", [256, 0, 16])
        setattr(made, f"{name}PaletteColorLookupTableData", table.tobytes())
    pixels = decode_deep(encoded(made))
    for channel in range(3):
        assert np.array_equal(pixels[..., channel].ravel(), np.roll(np.arange(256), 10 * channel))


def compressed(syntax: str, payload: bytes, values: np.ndarray, **options) -> bytes:
    made = dicom_dataset(values, **options)
    made.file_meta.TransferSyntaxUID = syntax
    made.PixelData = encapsulate([payload])
    made["PixelData"].VR = "OB"
    return encoded(made)


def test_compressed_files_that_can_be_read() -> None:
    colour = noise_image(4)
    for syntax, kind, options in (
        (JPEGBaseline8Bit, "JPEG", {"quality": 95, "subsampling": 0}),
        (JPEG2000Lossless, "JPEG2000", {"irreversible": False, "no_jp2": True}),
    ):
        buffer = io.BytesIO()
        colour.save(buffer, format=kind, **options)
        space = "YBR_FULL" if kind == "JPEG" else "RGB"
        data = compressed(syntax, buffer.getvalue(), np.asarray(colour), bits=8, PhotometricInterpretation=space)
        assert np.abs(decode_deep(data).astype(int) - np.asarray(colour).astype(int)).max() <= 12
    packed = dicom_dataset(RAMP, WindowCenter=2048, WindowWidth=4096)
    packed.compress(RLELossless)
    assert np.array_equal(
        decode_deep(encoded(packed)), decode_deep(dicom_bytes(RAMP, WindowCenter=2048, WindowWidth=4096))
    )


@pytest.mark.parametrize(
    ("syntax", "said"),
    [(JPEGLosslessSV1, "JPEG Lossless"), (JPEGLSLossless, "JPEG-LS"), (MPEG2MPML, "MPEG2")],
)
def test_transfer_syntaxes_that_cannot_be_read_are_named(syntax: str, said: str) -> None:
    data = compressed(syntax, b"\xff\xd8\xff\xd9", RAMP)
    with pytest.raises(UnreadableImageError, match=said):
        decode_deep(data)


def test_what_is_not_one_image_is_refused_by_name() -> None:
    frames = dicom_dataset(np.stack([RAMP, RAMP]).reshape(128, 64))
    frames.Rows, frames.NumberOfFrames = 64, 2
    cases = {
        "2 frames": encoded(frames),
        "without an image (modality SR)": dicom_bytes(RAMP, PixelData=None, Modality="SR"),
        "photometric interpretation HSV": dicom_bytes(
            np.asarray(noise_image(1)), bits=8, PhotometricInterpretation="HSV"
        ),
        "more than can be decoded": dicom_bytes(RAMP, Rows=60_000, Columns=60_000),
        "lacks": dicom_bytes(RAMP, PhotometricInterpretation=None),
        "DICOM file": dicom_bytes(RAMP)[:-2000],
    }
    for said, data in cases.items():
        with pytest.raises(UnreadableImageError) as caught:
            decode_deep(data)
        assert said in str(caught.value)


def test_no_file_makes_the_decoder_fail_otherwise(caplog: pytest.LogCaptureFixture) -> None:
    """Bytes changed at random: an image or a reason, never another error, and no field of a patient in the reason."""
    good = dicom_bytes(RAMP, PatientName="Mustermann^Erika", PatientID="4711-SECRET", WindowCenter=9, WindowWidth=9)
    rng = np.random.default_rng(0)
    reasons = []
    for _ in range(150):
        data = bytearray(good)
        for position in rng.integers(132, min(len(data), 900), rng.integers(1, 6)).tolist():
            data[position] = int(rng.integers(0, 256))
        try:
            decode_deep(bytes(data))
        except UnreadableImageError as error:
            reasons.append(str(error))
    said = " ".join(reasons) + caplog.text
    assert len(reasons) > 20
    assert "SECRET" not in said
    assert "Muster" not in said


# ---- in folders and lists


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    """Two classes of DICOM files, four patients each with three images; one file in two has no extension."""
    root = tmp_path / "clinic"
    rng = np.random.default_rng(5)
    for number, label in enumerate(("benign", "malignant")):
        (root / label).mkdir(parents=True)
        for index in range(12):
            values = rng.integers(0, 4096, (24, 24)).astype(np.uint16)
            data = dicom_bytes(values, PatientID=f"SECRET-{number}{index // 3}", PatientName="Doe^Jane")
            name = f"IM{index:04d}" if index % 2 else f"1.2.840.{index}.dcm"
            (root / label / name).write_bytes(data)
    (root / "DICOMDIR").write_bytes((root / "benign" / "IM0001").read_bytes())
    (root / "benign" / "notes").write_text("not an image")
    return root


def test_a_folder_of_dicom_is_grouped_by_patient_when_asked(clinic: Path) -> None:
    source = opened(f"folder:{clinic}", groups="dicom:PatientID")
    assert source.class_counts == [12, 12]
    assert source.groups is not None
    assert len(np.unique(source.groups)) == 8
    assert not any("SECRET" in name for name in source.groups.tolist())
    split = make_split(
        dataset="d",
        class_names=source.card.classes,
        labels=source.labels,
        sha256=[f"{i:064x}" for i in range(24)],
        protocol=Protocol(name="half"),
        groups=source.groups,
    )
    assert all(len(set(split.roles[source.groups == name].tolist())) == 1 for name in np.unique(source.groups))
    assert opened(f"folder:{clinic}").groups is None
    assert "no field called 'Patient'" in refused(f"folder:{clinic}", groups="dicom:Patient")


def test_a_list_of_dicom_and_a_run_on_it(clinic: Path, cli, tmp_path: Path) -> None:
    lines = [f"{path.relative_to(tmp_path)};{path.parent.name}" for path in sorted(clinic.glob("*/*[0-9m]"))]
    (tmp_path / "list.csv").write_text("File;Class\n" + "\n".join(lines))
    name = f"csv:{tmp_path / 'list.csv'}"
    assert opened(name, groups="dicom:PatientID").class_counts == [12, 12]
    arguments = ("--preset", "smoke", "--set", "image_size=16", "--dataset-set", "groups=dicom:PatientID")
    result = cli("run", "-m", "kmeans", "-d", name, *arguments)
    assert result.exit_code == 0, result.output
    assert "SECRET" not in result.output
    written = b"".join(path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file())
    assert b"SECRET" not in written
    audit = cli("data", "audit", f"folder:{clinic}")
    assert audit.exit_code == 0, audit.output


def test_mixed_with_other_images(clinic: Path) -> None:
    noise_image(1).save(clinic / "benign" / "photo.jpg")
    source = opened(f"folder:{clinic}", groups="dicom:PatientID")
    assert source.class_counts == [13, 12]
    assert "1 of 25 images belong to no group" in " ".join(remark.message for remark in source.remarks)
    index = source.keys.index("benign/photo.jpg")
    assert source.decode is not None
    assert np.array_equal(source.decode(source.raw(index)), np.asarray(Image.open(clinic / "benign" / "photo.jpg")))


def test_without_pydicom_the_extra_is_named(clinic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    real = builtins.__import__

    def missing(name: str, *rest, **named):
        if name.partition(".")[0] == "pydicom":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(DataError) as caught:
        opened(f"folder:{clinic}")
    assert "gcdbench[dicom]" in (caught.value.hint or "")
