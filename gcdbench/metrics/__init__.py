"""Metrics: pure functions of (y_true, cluster, is_old, anchored). See :mod:`gcdbench.metrics.builtin` for the list."""
