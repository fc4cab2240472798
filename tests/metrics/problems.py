"""Small scoring problems for property tests: classes, clusters, and which classes are old."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st


@st.composite
def problems(draw, max_classes=6, max_clusters=8, max_samples=40):
    """y_true (N,), cluster (N,), is_old (C,)."""
    classes = draw(st.integers(1, max_classes))
    n = draw(st.integers(1, max_samples))
    y_true = draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n))
    cluster = draw(st.lists(st.integers(0, max_clusters - 1), min_size=n, max_size=n))
    is_old = draw(st.lists(st.booleans(), min_size=classes, max_size=classes))
    return np.array(y_true), np.array(cluster), np.array(is_old)
