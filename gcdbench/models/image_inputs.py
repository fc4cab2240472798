"""What a model is asked about: files, folders, patterns or arrays, decoded as an image store decodes them.

Images are decoded ahead in threads, a bounded number at a time and in order, so that memory stays flat however many
there are.
"""

from __future__ import annotations

import glob
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gcdbench.core.arrays import Pixels
from gcdbench.core.errors import DataError
from gcdbench.core.work import available_cores
from gcdbench.datasets.sources.walk import list_images
from gcdbench.images.decoding import UnreadableImageError, open_image, to_square

PathLike = str | Path
ImageLike = PathLike | Image.Image | NDArray[np.uint8]
Images = ImageLike | Iterable[ImageLike]
"""A folder, a file, a pattern such as ``scans/**/*.png``, an array (N, H, W, 3), or any series of such things."""

AHEAD = 8
"""Images per worker that may be decoded before they are needed."""


@dataclass(frozen=True, kw_only=True)
class ImageInput:
    """One image: what it is called in the answer, and how it is opened."""

    name: str
    open: Callable[[], Image.Image]


@dataclass(frozen=True, kw_only=True)
class DecodedImage:
    """(side, side, 3) pixels of one image, or None and the reason why it cannot be read."""

    name: str
    square: Pixels | None
    reason: str = ""


def find_inputs(images: Images) -> tuple[Iterator[ImageInput], int | None]:
    """The images that are meant, in order, and how many; None where a series does not tell its length.

    Folders are searched to any depth. A place that does not exist is an error at once.
    """
    if isinstance(images, np.ndarray):
        return _from_batch(images)
    if isinstance(images, (str, Path, Image.Image)):
        found = _expand(images, 0)
        return iter(found), len(found)
    if isinstance(images, Sequence):
        # Paths are looked up before anything is predicted: a misspelt one must not cost an hour.
        found = [item for number, image in enumerate(images) for item in _expand(image, number)]
        return iter(found), len(found)
    return chain.from_iterable(_expand(image, number) for number, image in enumerate(images)), None


def choose_evenly(places: Sequence[PathLike], most: int | None = None) -> list[Path]:
    """The files that ``places`` mean, at most so many of them, spread evenly over all."""
    files = [path for place in places for path in _paths(place)]
    if most is None or most >= len(files):
        return files
    return [files[index] for index in np.linspace(0, len(files) - 1, most).round().astype(int)]


def decode_ahead(inputs: Iterator[ImageInput], side: int, workers: int | None = None) -> Iterator[DecodedImage]:
    """Squares of ``side`` pixels, in order."""
    workers = available_cores() if workers is None else max(workers, 1)
    waiting: deque[Future[DecodedImage]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for item in inputs:
                waiting.append(pool.submit(_decode, item, side))
                if len(waiting) >= AHEAD * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:  # nobody asks any more
                future.cancel()


def _decode(item: ImageInput, side: int) -> DecodedImage:
    try:
        return DecodedImage(name=item.name, square=to_square(item.open(), side))
    except UnreadableImageError as error:
        return DecodedImage(name=item.name, square=None, reason=str(error))
    except OSError as error:
        return DecodedImage(name=item.name, square=None, reason=error.strerror or str(error))


def _expand(image: ImageLike, number: int) -> list[ImageInput]:
    if isinstance(image, (str, Path)):
        return [ImageInput(name=str(path), open=_Opener(path)) for path in _paths(image)]
    if isinstance(image, Image.Image):
        return [ImageInput(name=f"image {number}", open=lambda: image)]
    if isinstance(image, np.ndarray):
        if image.dtype != np.uint8 or not (image.ndim == 2 or (image.ndim == 3 and image.shape[2] == 3)):
            raise _wrong_array(image, "(H, W, 3) or (H, W)")
        return [ImageInput(name=f"image {number}", open=lambda: Image.fromarray(image))]
    raise DataError(
        f"An image is a path, an array or a Pillow image, not {type(image).__name__}.",
        hint="For example model.predict('scans/'), model.predict(['a.png', 'b.png']) or model.predict(array).",
    )


def _from_batch(images: NDArray[np.uint8]) -> tuple[Iterator[ImageInput], int]:
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3:
        raise _wrong_array(images, "(N, H, W, 3)")
    return (ImageInput(name=f"image {n}", open=lambda n=n: Image.fromarray(images[n])) for n in range(len(images))), (  # type: ignore[misc]
        len(images)
    )


def _wrong_array(array: NDArray[np.generic], shape: str) -> DataError:
    return DataError(
        f"An array of images has bytes (uint8) and the shape {shape}, not {array.dtype} and {array.shape}."
    )


@dataclass(frozen=True)
class _Opener:
    path: Path

    def __call__(self) -> Image.Image:
        # A pipe or a device would be read for ever.
        if not stat.S_ISREG(self.path.stat().st_mode):
            raise UnreadableImageError("it is not a regular file")
        return open_image(self.path.read_bytes())


def _paths(place: PathLike) -> list[Path]:
    path = Path(place).expanduser()
    if path.is_dir():
        found = [path / file.key for file in list_images(path).files]
        if not found:
            raise DataError(f"There is no image in the folder '{path}'.")
        return found
    if path.exists():
        return [path]
    if any(sign in str(place) for sign in "*?["):
        matched = sorted(Path(name) for name in glob.glob(str(path), recursive=True))
        if files := [name for name in matched if not name.is_dir()]:
            return files
        raise DataError(f"No file fits the pattern '{place}'.")
    raise DataError(f"There is no '{place}'.", hint="Give files, folders, or patterns in quotation marks.")
