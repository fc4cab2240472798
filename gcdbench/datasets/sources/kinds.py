"""Which files are images, told by their names and first bytes, and how a dataset of them is decoded."""

from __future__ import annotations

import os
from collections.abc import Sequence

from gcdbench.core.regular_files import open_regular
from gcdbench.images.deep import HEADER_BYTES, DeepDecoder, is_deep_file, is_deep_grey_png, is_dicom
from gcdbench.images.dicom import require_pydicom

IMAGE_SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".png", ".tif", ".tiff", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".pbm", ".jp2"}
)
DICOM_SUFFIXES = frozenset({".dcm", ".dicom", ".ima"})
_MAY_BE_DEEP = frozenset({".tif", ".tiff", ".pgm", ".jp2"})


def is_image(path: str) -> bool:
    """Whether a file counts as an image. Scanners often give DICOM files no extension: such files are looked into."""
    suffix = _suffix(path)
    return suffix in IMAGE_SUFFIXES or suffix in DICOM_SUFFIXES or _is_nameless_dicom(path, suffix)


def deepest_kind(paths: Sequence[str]) -> str:
    """ "dicom" where one of the files is DICOM, "deep" where one has more than eight bits, else "plain"."""
    files = [(path, _suffix(path)) for path in paths]
    if any(suffix in DICOM_SUFFIXES or _is_nameless_dicom(path, suffix) for path, suffix in files):
        return "dicom"
    return "deep" if any(_is_deep(path, suffix) for path, suffix in files) else "plain"


def needed_decoder(kind: str) -> DeepDecoder | None:
    """None for plain files, which keeps them in the image stores that they have always had."""
    if kind == "dicom":
        require_pydicom()
    return None if kind == "plain" else DeepDecoder()


def _suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _is_nameless_dicom(path: str, suffix: str) -> bool:
    """``IM0001`` and ``1.2.840.113619``, but not the directory of a disc."""
    if (suffix and not suffix[1:].isdigit()) or os.path.basename(path).upper() == "DICOMDIR":
        return False
    return is_dicom(_head(path))


def _is_deep(path: str, suffix: str) -> bool:
    if suffix == ".png":
        return is_deep_grey_png(_head(path))
    if suffix not in _MAY_BE_DEEP:
        return False
    try:
        with open_regular(path) as file:
            return is_deep_file(file)
    except OSError:
        return False


def _head(path: str) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read(HEADER_BYTES)
    except OSError:  # whoever reads it says what is wrong with it
        return b""
