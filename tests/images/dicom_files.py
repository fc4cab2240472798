"""Real DICOM files, written by pydicom."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, SecondaryCaptureImageStorage, generate_uid

MAGIC_AT = 128


def dicom_dataset(values: np.ndarray, *, bits: int = 12, signed: bool = False, **fields: Any) -> Dataset:
    """An image (H, W) or (H, W, 3) with what a viewer needs; ``fields`` adds or changes some, None removes one."""
    made = Dataset()
    made.file_meta = FileMetaDataset()
    made.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    made.file_meta.MediaStorageSOPClassUID = SecondaryCaptureImageStorage
    made.file_meta.MediaStorageSOPInstanceUID = generate_uid()
    made.SOPClassUID = SecondaryCaptureImageStorage
    made.SOPInstanceUID = made.file_meta.MediaStorageSOPInstanceUID
    made.Modality = "CR"
    made.Rows, made.Columns = values.shape[:2]
    made.SamplesPerPixel = 3 if values.ndim == 3 else 1
    made.PhotometricInterpretation = "RGB" if values.ndim == 3 else "MONOCHROME2"
    if values.ndim == 3:
        made.PlanarConfiguration = 0
    made.BitsAllocated = 8 if bits <= 8 else 16
    made.BitsStored, made.HighBit = bits, bits - 1
    made.PixelRepresentation = int(signed)
    kind = f"{'i' if signed else 'u'}{made.BitsAllocated // 8}"
    made.PixelData = values.astype(f"<{kind}").tobytes()
    made["PixelData"].VR = "OB" if bits <= 8 else "OW"
    for name, value in fields.items():
        if value is None:
            delattr(made, name)
        else:
            setattr(made, name, value)
    return made


def dicom_bytes(values: np.ndarray, **options: Any) -> bytes:
    """The file of :func:`dicom_dataset`."""
    return encoded(dicom_dataset(values, **options))


def encoded(made: Dataset) -> bytes:
    """A dataset as the bytes of a file."""
    buffer = io.BytesIO()
    made.save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()
