"""The sizes of the EfficientNet-Lite networks: Google's base network, scaled in width and depth. No torch here.

Unlike the full EfficientNets, a Lite network scales neither its stem and head nor how often its first and last stage
are repeated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

STAGES = (
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 2),
    (5, 2, 6, 40, 2),
    (3, 2, 6, 80, 3),
    (5, 1, 6, 112, 3),
    (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
)
"""Kernel, stride of the first block, expansion, output channels and blocks of each stage."""

STEM, HEAD = 32, 1280
DIVISOR = 8
"""Widths are multiples of it."""

Block = tuple[int, int, int, int, int]
"""Kernel, stride, expansion, input channels, output channels."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One network: its blocks, and which of them comes first where the stride goes from 16 to 32."""

    name: str
    blocks: tuple[Block, ...]
    first_trained: int

    @property
    def cut(self) -> int:
        """Channels between the frozen and the trained part."""
        return self.blocks[self.first_trained][3]


def scaled_width(channels: int, width: float) -> int:
    """The nearest multiple of the divisor, and never more than a tenth below the wanted width."""
    wanted = channels * width
    rounded = max(DIVISOR, int(wanted + DIVISOR / 2) // DIVISOR * DIVISOR)
    return rounded + DIVISOR if rounded < 0.9 * wanted else rounded


def make_layout(name: str, *, width: float, depth: float) -> Layout:
    """The base network, its channels times ``width`` and its stages' lengths times ``depth``."""
    blocks: list[Block] = []
    channels = STEM
    for number, (kernel, stride, expansion, base, count) in enumerate(STAGES):
        outputs = scaled_width(base, width)
        fixed = number in (0, len(STAGES) - 1)
        for repeat in range(count if fixed else math.ceil(count * depth)):
            blocks.append((kernel, 1 if repeat else stride, expansion, channels, outputs))
            channels = outputs
    last_stride = max(number for number, block in enumerate(blocks) if block[1] == 2)
    return Layout(name=name, blocks=tuple(blocks), first_trained=last_stride)


LITE0 = make_layout("efficientnet-lite0", width=1.0, depth=1.0)
LITE2 = make_layout("efficientnet-lite2", width=1.1, depth=1.2)
