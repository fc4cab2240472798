"""GCD's semi-supervised k-means on frozen features (Vaze et al., CVPR 2022)."""

from __future__ import annotations

from typing import Protocol

from gcdbench.methods.algorithms.clustering import Clustering, Floats, constrained_kmeans
from gcdbench.methods.kmeans import KMeans
from gcdbench.splits.data import GCDData
from gcdbench.training.context import RunContext
from gcdbench.training.method import TaskInfo


class Effort(Protocol):
    """What any config says about how hard k-means tries."""

    @property
    def n_init(self) -> int: ...
    @property
    def max_iter(self) -> int: ...
    @property
    def tol(self) -> float: ...


def cluster_task(
    labelled: Floats, data: GCDData, unlabelled: Floats, k: int, *, task: TaskInfo, ctx: RunContext, effort: Effort
) -> Clustering:
    """K centres of a task's features, the first K_old of them at the old classes."""
    return constrained_kmeans(
        unlabelled,
        k,
        ctx.rng("ss-kmeans"),
        labelled=labelled,
        labels=data.labels,
        k_old=task.k_old,
        n_init=effort.n_init,
        max_iter=effort.max_iter,
        tol=effort.tol,
    )


class SSKMeans(KMeans):
    """K-means in which a labelled image never leaves its class: cluster c is class c for every old class."""

    anchored = True

    def cluster(self, labelled: Floats, data: GCDData, unlabelled: Floats, k: int) -> Clustering:
        """GCD's semi-supervised k-means."""
        return cluster_task(labelled, data, unlabelled, k, task=self.task, ctx=self.ctx, effort=self.config)
