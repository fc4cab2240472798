"""Files that prove themselves: the content, then checksums of its pieces, then a checksum of these.

Whatever is kept to save time and read back later is sealed when it is written and verified when it is opened, so that
a bit that flipped on the disk, a hole after a crash or a file that was cut short is found before it can change a
result. The seal comes after the content, in the same file: readers that know nothing of it (``np.load``,
``torch.load``) read the content as before, and content and seal are replaced in one step.

The checksum is XXH3 (128 bits): against accidents, not against people, and as fast as memory.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import xxhash

from gcdbench.core.work import available_cores

PIECE = 4 * 2**20
"""Bytes with a checksum of their own."""

MAX_THREADS = 8
"""More do not read faster."""

_MAGIC = b"gcdseal1"
_DIGEST = 16
_END = struct.Struct("<QI16s8s")
"""Length of the content, bytes in a piece, checksum of all before it in the seal, magic number."""


class DamagedError(Exception):
    """A sealed file, or content, that is not what was sealed; the text says what is wrong with it."""


def seal(path: Path) -> None:
    """Append checksums to a file that is complete."""
    length = path.stat().st_size
    with path.open("ab") as file:
        file.write(_make_seal(_digest_file(path, length, PIECE), length))


def verify(path: Path) -> None:
    """Read a sealed file and refuse it unless every piece is what it was; FileNotFoundError where there is none."""
    with _reading():
        with path.open("rb") as file:
            length, piece, expected = _read_seal(file)
        found = _digest_file(path, length, piece)
    _compare(found, expected)


def seal_bytes(content: bytes | memoryview) -> bytes:
    """The content and its seal, for files that are small enough to be written at once."""
    view = memoryview(content)
    pieces = b"".join(_digest(view[start : start + PIECE]) for start in range(0, len(view), PIECE))
    return b"".join((view, _make_seal(pieces, len(view))))


def read_sealed(path: Path) -> bytes:
    """The content of a sealed file, verified; FileNotFoundError where there is none."""
    with _reading(), path.open("rb") as file:
        length, piece, expected = _read_seal(file)
        file.seek(0)
        content = file.read(length)
    view = memoryview(content)
    _compare(b"".join(_digest(view[start : start + piece]) for start in range(0, length, piece)), expected)
    return content


def seal_size(length: int) -> int:
    """Bytes that the seal of so much content takes."""
    return -(-length // PIECE) * _DIGEST + _END.size


@contextmanager
def _reading() -> Iterator[None]:
    """A folder in the place of the file, or a sector that cannot be read, is damage; no file is none."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(error.errno, error.strerror, error.filename) from error
    except OSError as error:
        raise DamagedError(error.strerror or str(error)) from error


def _digest(data: bytes | memoryview) -> bytes:
    return xxhash.xxh3_128_digest(data)


def _make_seal(pieces: bytes, length: int) -> bytes:
    return pieces + _END.pack(length, PIECE, _digest(pieces + struct.pack("<QI", length, PIECE)), _MAGIC)


def _read_seal(file: BinaryIO) -> tuple[int, int, bytes]:
    """Length of the content, bytes in a piece, and the expected checksums of the pieces."""
    size = file.seek(0, 2)
    if size < _END.size:
        raise DamagedError("it is cut short")
    file.seek(size - _END.size)
    length, piece, own, magic = _END.unpack(file.read(_END.size))
    if magic != _MAGIC:
        raise DamagedError("it has no checksums, or is cut short")
    count = -(-length // piece) if piece else 0
    if length + count * _DIGEST + _END.size != size:
        raise DamagedError("its checksums are damaged")
    file.seek(length)
    pieces = file.read(count * _DIGEST)
    if _digest(pieces + struct.pack("<QI", length, piece)) != own:
        raise DamagedError("its checksums are damaged")
    return length, piece, pieces


def _digest_file(path: Path, length: int, piece: int) -> bytes:
    """Checksums of the pieces of a file's first ``length`` bytes, read by several threads."""
    count = -(-length // piece)
    threads = max(min(available_cores(), MAX_THREADS, count), 1)
    edges = [count * i // threads for i in range(threads + 1)]

    def digest_stripe(first: int, last: int) -> bytes:
        return b"".join(_digest_pieces(path, first, last, length, piece))

    if threads == 1:
        return digest_stripe(0, count)
    with ThreadPoolExecutor(threads) as pool:
        return b"".join(pool.map(digest_stripe, edges[:-1], edges[1:]))


def _digest_pieces(path: Path, first: int, last: int, length: int, piece: int) -> Iterator[bytes]:
    buffer = memoryview(bytearray(min(piece, length)))
    # Read and not mapped: a sector that cannot be read is an error then, and not the end of the process.
    with path.open("rb", buffering=0) as file:
        file.seek(first * piece)
        for number in range(first, last):
            wanted, done = min(piece, length - number * piece), 0
            while done < wanted:
                got = file.readinto(buffer[done:wanted])
                if not got:
                    raise DamagedError("it is cut short")
                done += got
            yield _digest(buffer[:wanted])


def _compare(found: bytes, expected: bytes) -> None:
    if found == expected:
        return
    count = len(expected) // _DIGEST
    pairs = range(0, len(expected), _DIGEST)
    differing = sum(found[at : at + _DIGEST] != expected[at : at + _DIGEST] for at in pairs)
    raise DamagedError(f"{differing} of its {count} pieces are not what was written")
