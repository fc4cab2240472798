"""Two metrics of how clusters and classes lie to each other, one to be high and one to be low."""

import numpy as np


def purity(y_true, cluster, is_old, anchored):
    """Share of samples that belong to the majority class of their cluster."""
    majority = sum(np.bincount(y_true[cluster == c]).max() for c in np.unique(cluster))
    return {"purity": 100.0 * majority / len(y_true)}


def fragments(y_true, cluster, is_old, anchored):
    """Over how many clusters a class is spread, on average over the classes that occur."""
    return {"fragments": float(np.mean([len(np.unique(cluster[y_true == c])) for c in np.unique(y_true)]))}
