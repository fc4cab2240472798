"""Batched augmentation: one pass over a batch of stored images, with parameters of its own for every sample.

The views are those of torchvision's RandomCrop, RandomHorizontalFlip, ColorJitter and Normalize, in distribution:
the four colour operations come in a random order for each sample. Parameters are a hash of (seed, id, draw), so a
view does not depend on the batch it is made in. There is no loop over samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcdbench.core.arrays import IntArray
from gcdbench.core.errors import ConfigError, UnknownName
from gcdbench.models.kernels import make_views
from gcdbench.views.draws import uniforms

Images = NDArray[np.uint8 | np.floating]
"""(B, S, S, 3): bytes as they are stored, or floats in [0, 1]."""

Value = TypeVar("Value", bound=np.generic)

Channels = tuple[float, float, float]
ZEROS: Channels = (0.0, 0.0, 0.0)
ONES: Channels = (1.0, 1.0, 1.0)

GREY = (0.2989, 0.587, 0.114)
"""Weights of red, green and blue in a grey value (ITU-R 601), as torchvision has them."""

BRIGHTNESS, CONTRAST, SATURATION, HUE = range(4)
ORDERS = np.array(list(permutations((BRIGHTNESS, CONTRAST, SATURATION, HUE))), dtype=np.int64)

TOP, LEFT, FLIP, ORDER, FACTORS = 0, 1, 2, 3, 4
PARAMETERS = 8
"""Random numbers a view takes: crop top and left, flip, order of colour operations, four colour factors."""


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """Ranges of the random changes; as torchvision's ColorJitter, brightness b means a factor in [1 − b, 1 + b]."""

    name: str
    flip: float = 0.5
    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.4
    hue: float = 0.1

    @property
    def key(self) -> str:
        """A text that changes whenever a view would."""
        return f"{self.name}/1/{self.flip}/{self.brightness}/{self.contrast}/{self.saturation}/{self.hue}"


AUGMENTATIONS = {
    # Crop, flip and colour jitter, the usual views of GCD code. The name is in the ids of stored runs, so it stays.
    "paper": Augmentation(name="paper"),
    "geometric": Augmentation(name="geometric", brightness=0.0, contrast=0.0, saturation=0.0, hue=0.0),
}


def find_augmentation(name: str) -> Augmentation:
    """The augmentation of that name."""
    if name not in AUGMENTATIONS:
        raise UnknownName("augmentation", name, AUGMENTATIONS)
    return AUGMENTATIONS[name]


@dataclass(frozen=True, kw_only=True)
class ViewParameters:
    """Random parameters of B views: crop corner and flip (B,), colour factors (B, 4) by operation, and the order of
    the operations (B, 4), −1 where there is nothing to do at this turn."""

    top: IntArray
    left: IntArray
    flip: NDArray[np.bool_]
    factors: NDArray[np.float32]
    order: IntArray


def draw_parameters(
    augmentation: Augmentation, *, ids: IntArray, draw: IntArray | int, seed: int, slack: int
) -> ViewParameters:
    """Parameters of one view for each id; ``slack`` is how many pixels a stored image is larger than a view."""
    u = uniforms(seed, ids[:, None], np.broadcast_to(np.asarray(draw), ids.shape)[:, None], np.arange(PARAMETERS))
    spread = np.array([augmentation.brightness, augmentation.contrast, augmentation.saturation, augmentation.hue])
    centre = np.array([1.0, 1.0, 1.0, 0.0])
    order = ORDERS[(u[:, ORDER] * len(ORDERS)).astype(np.int64)]
    return ViewParameters(
        top=(u[:, TOP] * (slack + 1)).astype(np.int64),
        left=(u[:, LEFT] * (slack + 1)).astype(np.int64),
        flip=u[:, FLIP] < augmentation.flip,
        factors=(centre + (2 * u[:, FACTORS:] - 1) * spread).astype(np.float32),
        order=np.where(spread[order] > 0, order, -1),
    )


def crop(pixels: NDArray[Value], size: int, parameters: ViewParameters) -> NDArray[Value]:
    """(B, S, S, 3) to (B, size, size, 3): each image cropped at its own corner and flipped if its parameter says so."""
    rows = parameters.top[:, None] + np.arange(size)
    steps = np.where(parameters.flip[:, None], np.arange(size)[::-1], np.arange(size))
    columns = parameters.left[:, None] + steps
    side = pixels.shape[1]
    # One gather of whole pixels from the flattened batch: the flip costs nothing extra.
    flat = (np.arange(len(pixels))[:, None] * side + rows)[:, :, None] * side + columns[:, None, :]
    chosen = np.take(pixels.reshape(-1, 3), flat.reshape(-1), axis=0)
    views: NDArray[Value] = chosen.reshape(len(pixels), size, size, 3)
    return views


def crop_centre(pixels: NDArray[Value], size: int) -> NDArray[Value]:
    """(B, S, S, 3) to the middle (B, size, size, 3): the test view."""
    first = (pixels.shape[1] - size) // 2
    centre: NDArray[Value] = pixels[:, first : first + size, first : first + size]
    return centre


def check_sizes(stored: int, size: int) -> None:
    """Refuse views that are larger than the stored images."""
    if size > stored:
        raise ConfigError(
            f"Views of {size} px cannot be cut from stored images of {stored} px.",
            hint="Prepare the dataset again for this image_size.",
        )


def grey(images: Tensor) -> Tensor:
    """(B, 3, H, W) to the grey values (B, 1, H, W)."""
    red, green, blue = images.unbind(1)
    return (GREY[0] * red + GREY[1] * green + GREY[2] * blue).unsqueeze(1)


def jitter(images: Tensor, parameters: ViewParameters) -> Tensor:
    """Colour jitter of images in [0, 1], (B, 3, H, W); the input may be overwritten.

    Brightness, contrast and saturation all mix the image with something darker, flatter or greyer:
    factor · image + (1 − factor) · (black | mean grey value | grey image). So one pass serves whichever of
    the three is a sample's turn, and four turns with their own choice give every order.
    """
    order = torch.from_numpy(parameters.order)
    factors = torch.from_numpy(parameters.factors)
    for turn in range(4):
        operation = order[:, turn]
        factor = factors.gather(1, operation.clamp(min=0)[:, None])[:, 0]
        mixing = ((operation >= 0) & (operation != HUE)).nonzero()[:, 0]
        turning = (operation == HUE).nonzero()[:, 0]
        if len(mixing):
            images[mixing] = _mix_towards(images[mixing], operation[mixing], factor[mixing])
        if len(turning):
            images[turning] = shift_hue(images[turning], factor[turning])
    return images


def _mix_towards(images: Tensor, operation: Tensor, factor: Tensor) -> Tensor:
    factor = factor[:, None, None, None]
    greyness = grey(images)
    mean = greyness.mean(dim=(1, 2, 3), keepdim=True)
    contrast = (operation == CONTRAST)[:, None, None, None].to(images.dtype)
    saturation = (operation == SATURATION)[:, None, None, None].to(images.dtype)
    other = (1 - factor) * (contrast * mean + saturation * greyness)
    return torch.addcmul(other, images, factor).clamp_(0, 1)


def shift_hue(images: Tensor, shift: Tensor) -> Tensor:
    """Turn the hue of images in [0, 1], (B, 3, H, W), by ``shift`` (B,) of a full circle; value and saturation stay."""
    red, green, blue = images.unbind(1)
    value, smallest = images.amax(1), images.amin(1)
    chroma = value - smallest
    span = torch.where(chroma > 0, chroma, 1.0)
    # Position on the colour circle in sixths, measured from the channel that is largest.
    sixth = torch.where(
        value == red,
        (green - blue) / span,
        torch.where(value == green, 2 + (blue - red) / span, 4 + (red - green) / span),
    )
    sixth = sixth + 6 * shift[:, None, None]
    # Each channel is the value minus chroma times a trapezoid of the distance from its own place on the circle.
    places = torch.tensor([5.0, 3.0, 1.0])[None, :, None, None]
    distance = torch.remainder(sixth.unsqueeze(1) + places, 6.0)
    trapezoid = torch.minimum(distance, 4 - distance).clamp_(0, 1)
    return value.unsqueeze(1) - chroma.unsqueeze(1) * trapezoid


def to_float(pixels: Images) -> Tensor:
    """(B, H, W, 3) uint8, or floats in [0, 1], to (B, 3, H, W) float32 in [0, 1], channels-last in memory."""
    if pixels.dtype != np.uint8 and not np.issubdtype(pixels.dtype, np.floating):
        raise ValueError(f"images are uint8, or floats in [0, 1], not {pixels.dtype}")
    images = torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2).to(torch.float32, copy=True)
    return images.div_(255) if pixels.dtype == np.uint8 else images


def standardise(images: Tensor, mean: Channels, std: Channels) -> Tensor:
    """Subtract ``mean`` and divide by ``std``, channel by channel, in place."""
    return images.sub_(torch.tensor(mean)[:, None, None]).div_(torch.tensor(std)[:, None, None])


def render(
    pixels: Images, size: int, parameters: ViewParameters, mean: Channels = ZEROS, std: Channels = ONES
) -> Tensor:
    """Views (B, 3, size, size) of stored images (B, S, S, 3): crop, flip, jitter, standardise; channels-last in memory.

    The compiled kernel (for bytes) does in one pass what the functions above do in many; they agree up to rounding.
    """
    check_sizes(pixels.shape[1], size)
    if pixels.dtype == np.uint8:
        views = make_views(
            pixels.astype(np.uint8, copy=False),  # tells the type checker; nothing is copied
            size,
            top=parameters.top,
            left=parameters.left,
            flip=parameters.flip,
            factors=parameters.factors,
            order=parameters.order,
            mean=mean,
            std=std,
        )
        if views is not None:
            return views
    return standardise(jitter(to_float(crop(pixels, size, parameters)), parameters), mean, std)


def augment(
    pixels: Images,
    *,
    augmentation: Augmentation,
    ids: IntArray,
    draw: IntArray | int,
    seed: int,
    size: int,
    mean: Channels = ZEROS,
    std: Channels = ONES,
) -> Tensor:
    """Random views (B, 3, size, size) of stored images ``pixels`` (B, S, S, 3), whose ids are ``ids``."""
    check_sizes(pixels.shape[1], size)
    slack = pixels.shape[1] - size
    return render(
        pixels, size, draw_parameters(augmentation, ids=ids, draw=draw, seed=seed, slack=slack), mean=mean, std=std
    )


def centre_view(pixels: Images, *, size: int, mean: Channels = ZEROS, std: Channels = ONES) -> Tensor:
    """The one view used for evaluation, (B, 3, size, size): the centre, standardised."""
    check_sizes(pixels.shape[1], size)
    return standardise(to_float(crop_centre(pixels, size)), mean, std)
