"""One variable of a MATLAB file, read with care: such files are data, but a small one can unpack to a huge one."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

from gcdbench.core.errors import DataError
from gcdbench.core.regular_files import read_regular

MOST_BYTES = 256 * 2**20
"""Unpacked size above which a file is refused; the annotations of a dataset have a few megabytes."""

_HEADER = 128
_COMPRESSED = 15


def read_variable(file: Path, name: str) -> Any:
    """The variable ``name`` of a file of version 5, as numpy makes it; structures become records."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        data = read_regular(file)
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}.") from None
    if not data.startswith(b"MATLAB 5.0 MAT-file") or len(data) <= _HEADER:
        raise DataError(f"{file} is not a MATLAB file of version 5.", hint="It may be damaged: fetch it again.")
    try:
        if _unpacked_bytes(data) > MOST_BYTES:
            raise DataError(f"{file} unpacks to more than {MOST_BYTES // 2**20} MB, which no annotations need.")
        stream: Any = io.BytesIO(data)  # accepted, though the stubs know of paths only
        table = loadmat(stream, variable_names=[name], squeeze_me=True, appendmat=False)
    except (
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        OSError,
        NotImplementedError,
        MatReadError,
        MemoryError,
    ) as error:
        raise DataError(f"{file} is a damaged MATLAB file: {error}.", hint="Fetch it again.") from None
    except (struct.error, zlib.error) as error:
        raise DataError(f"{file} is a damaged MATLAB file: {error}.", hint="Fetch it again.") from None
    if name not in table:
        raise DataError(f"{file} has no variable '{name}'.", hint="It is another file of the same archive.")
    return table[name]


def _unpacked_bytes(data: bytes) -> int:
    """Bytes of all elements once unpacked, counted without keeping them; stops soon after the limit."""
    order = "<" if data[126:128] == b"IM" else ">"
    position, total = _HEADER, 0
    while position + 8 <= len(data) and total <= MOST_BYTES:
        kind, size = struct.unpack_from(f"{order}II", data, position)
        body = data[position + 8 : position + 8 + size]
        position += 8 + size
        if kind != _COMPRESSED:
            total += len(body)
            continue
        stream = zlib.decompressobj()
        while body and total <= MOST_BYTES:
            total += len(stream.decompress(body, 2**20))
            body = stream.unconsumed_tail
    return total
