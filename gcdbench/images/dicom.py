"""Single-frame DICOM images as the file asks to show them: rescaled, windowed, and the right way round."""

from __future__ import annotations

import hashlib
import io
import logging
import re
import struct
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.arrays import Pixels
from gcdbench.core.errors import DataError
from gcdbench.images.decoding import MAX_PIXELS, UnreadableImageError
from gcdbench.images.deep import HEADER_BYTES, grey_to_rgb, is_dicom, scale, stretch

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

_GREY = ("MONOCHROME1", "MONOCHROME2")
_COLOUR = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT")
_FAR = 1e12


def require_pydicom() -> None:
    """Say how to get the package that reads DICOM, where it is missing."""
    try:
        import pydicom  # noqa: F401
    except ImportError:
        raise DataError(
            "There are DICOM files, and the package that reads them is not installed.",
            hint="pip install 'gcdbench[dicom]'",
        ) from None


def decode_dicom(data: bytes) -> Pixels:
    """(H, W, 3) uint8 of a DICOM file; any failure becomes :class:`UnreadableImageError`, without a field of it."""
    try:
        import pydicom
    except ImportError:
        raise UnreadableImageError("a DICOM file: pip install 'gcdbench[dicom]'") from None
    with _failures_as_reasons():
        header = pydicom.dcmread(io.BytesIO(data))
        _require_single_image(header)
        kind = str(header.PhotometricInterpretation).strip()
        if kind in _GREY:
            grey = _shown_grey(header)
            return grey_to_rgb(255 - grey if kind == "MONOCHROME1" else grey)
        if kind == "PALETTE COLOR":
            from pydicom.pixels.processing import apply_color_lut

            return _eight_bits(apply_color_lut(_stored_values(header), header))
        if kind in _COLOUR:
            return _eight_bits(_stored_values(header), int(header.BitsStored))
        raise UnreadableImageError(f"its photometric interpretation {_code(kind)} is not supported")


def header_tokens(keyword: str, count: int, open_file: Callable[[int], BinaryIO]) -> list[str]:
    """What the field ``keyword`` says in each of ``count`` files, as tokens that do not give it away; "" without it.

    Equal values have equal tokens. Patients' names and numbers must not get into messages and records.
    """
    require_pydicom()
    import pydicom
    from pydicom.datadict import tag_for_keyword

    if tag_for_keyword(keyword) is None:
        raise DataError(
            f"DICOM has no field called '{keyword}'.", hint="For example PatientID, StudyInstanceUID, AccessionNumber."
        )
    tokens = []
    for index in range(count):
        value = ""
        with open_file(index) as file:
            if is_dicom(file.read(HEADER_BYTES)):
                file.seek(0)
                with suppress(UnreadableImageError), _failures_as_reasons():  # decoding it says what is wrong with it
                    header = pydicom.dcmread(file, stop_before_pixels=True, specific_tags=[keyword])
                    value = str(header.get(keyword) or "").strip()
        tokens.append(f"{keyword} {hashlib.sha256(value.encode()).hexdigest()[:12]}" if value else "")
    return tokens


def _require_single_image(header: Dataset) -> None:
    if "PixelData" not in header and "FloatPixelData" not in header and "DoubleFloatPixelData" not in header:
        raise UnreadableImageError(f"a DICOM file without an image (modality {_code(header.get('Modality'))})")
    frames = int(header.get("NumberOfFrames") or 1)
    if frames > 1:
        raise UnreadableImageError(f"a DICOM file of {frames} frames; only single images can be read")
    if int(header.Rows) * int(header.Columns) > MAX_PIXELS:
        raise UnreadableImageError(f"{header.Columns} x {header.Rows} pixels are more than can be decoded safely")
    _require_decoder(header)


def _require_decoder(header: Dataset) -> None:
    from pydicom.pixels.decoders.base import get_decoder

    syntax = header.file_meta.TransferSyntaxUID
    try:
        decoder = get_decoder(syntax)
    except NotImplementedError:
        name = f"'{syntax.name}'" if syntax.name != str(syntax) else "of another maker"
        raise UnreadableImageError(f"its transfer syntax {name} is not supported") from None
    if not decoder.is_available:
        packages = sorted({text.partition(" ")[0] for text in decoder.missing_dependencies})
        raise UnreadableImageError(
            f"its transfer syntax '{syntax.name}' needs another package ({' or '.join(packages)})"
        )


def _code(value: object) -> str:
    """A code of the standard as it is; in a damaged file anything may stand in its place, a patient's name included."""
    text = str(value or "").strip()
    return text if re.fullmatch("[A-Z0-9_ ]{1,16}", text) else "unknown"


def _stored_values(header: Dataset) -> NDArray[Any]:
    """The pixels as stored; luminance and chrominance come back as red, green and blue."""
    from pydicom.pixels.utils import pixel_array

    return np.asarray(pixel_array(header))


def _shown_grey(header: Dataset) -> NDArray[np.uint8]:
    """(H, W) uint8: the file's lookup table or first window where it has one, else all bits or the percentile rule."""
    from pydicom.pixels.processing import apply_modality_lut, apply_voi, apply_windowing

    stored = _stored_values(header)
    values = np.asarray(apply_modality_lut(stored, header))
    if header.get("VOILUTSequence"):
        bits = int(header.VOILUTSequence[0].LUTDescriptor[2])
        return scale(np.asarray(apply_voi(values, header)), 0, 2**bits - 1)
    if _has_window(header):
        # Two values far outside of any window tell what black and white are in the file's own range.
        with np.errstate(over="ignore"):
            *seen, black, white = apply_windowing(np.append(values.ravel(), [-_FAR, _FAR]), header)
        return scale(np.asarray(seen).reshape(values.shape), float(black), float(white))
    bits = int(header.get("BitsStored") or 64)
    if bits <= 8 and values is stored and not int(header.get("PixelRepresentation") or 0):
        return scale(values, 0, 2**bits - 1)
    return stretch(values, _without_padding(header, stored))


def _has_window(header: Dataset) -> bool:
    """Whether the first window can be used; files with an empty or impossible one exist."""
    first = []
    for name in ("WindowCenter", "WindowWidth"):
        value = header.get(name)
        several = value if isinstance(value, (list, tuple)) or hasattr(value, "__getitem__") else [value]
        if value is None or not len(several) or several[0] is None:
            return False
        first.append(float(several[0]))
    linear = str(header.get("VOILUTFunction") or "LINEAR").upper() == "LINEAR"
    return first[1] > (1 if linear else 0)


def _without_padding(header: Dataset, stored: NDArray[Any]) -> NDArray[np.bool_] | None:
    padding = header.get("PixelPaddingValue")
    return None if padding is None else np.asarray(stored != int(padding))


def _eight_bits(values: NDArray[Any], bits: int | None = None) -> Pixels:
    """(H, W, 3) uint8 of colour values of ``bits`` bits, or as many as their type has."""
    if values.ndim != 3 or values.shape[2] != 3:
        raise UnreadableImageError(f"its colour pixels have the shape {values.shape}")
    return scale(values, 0, 2 ** (bits or values.dtype.itemsize * 8) - 1)


@contextmanager
def _failures_as_reasons() -> Iterator[None]:
    from pydicom.errors import InvalidDicomError

    logger = logging.getLogger("pydicom")
    was_silent, logger.disabled = logger.disabled, True  # its warnings quote fields of the file
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except InvalidDicomError:
        raise UnreadableImageError("not a complete DICOM file") from None
    except AttributeError as error:  # pydicom's way to say that a field is missing
        missing = str(error).rpartition("attribute ")[2] or str(error)
        raise UnreadableImageError(f"a DICOM file that lacks {missing}") from None
    except (
        ArithmeticError,
        EOFError,
        LookupError,
        MemoryError,
        NotImplementedError,
        OSError,
        RuntimeError,
        TypeError,
        ValueError,
        struct.error,
    ) as error:
        raise UnreadableImageError(f"a damaged DICOM file ({type(error).__name__})") from None
    finally:
        logger.disabled = was_silent
