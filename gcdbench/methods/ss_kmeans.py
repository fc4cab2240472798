"""GCD's semi-supervised k-means on frozen features (Vaze et al., CVPR 2022)."""

from __future__ import annotations

from dataclasses import dataclass

from gcdbench.data.types import GCDData
from gcdbench.methods.clustering import Clustering, Floats, constrained_kmeans
from gcdbench.methods.kmeans import KMeans, KMeansConfig


@dataclass(frozen=True, kw_only=True)
class SSKMeansConfig(KMeansConfig):
    """The values of GCD's script (its code's own defaults are 10 starts of 10 iterations)."""

    n_init: int = 100
    max_iter: int = 200


class SSKMeans(KMeans):
    """K-means in which a labelled image never leaves its class: cluster c is class c for every old class."""

    anchored = True

    def cluster(self, labelled: Floats, data: GCDData, unlabelled: Floats, k: int) -> Clustering:
        """Find K centres, the first K_old of them at the old classes."""
        c = self.config
        return constrained_kmeans(
            unlabelled,
            k,
            self.ctx.rng("ss-kmeans"),
            labelled=labelled,
            labels=data.labels,
            k_old=self.task.k_old,
            n_init=c.n_init,
            max_iter=c.max_iter,
            tol=c.tol,
        )
