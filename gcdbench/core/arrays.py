"""Types of arrays that travel between rooms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
Pixels = NDArray[np.uint8]
"""Images as bytes, (..., H, W, 3)."""
