"""Communities of a neighbour graph: DCCL's concepts. Infomap where it is installed, Louvain otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gcdbench.core.arrays import IntArray
from gcdbench.core.errors import TrainingError
from gcdbench.methods.algorithms.neighbours import nearest_neighbours
from gcdbench.methods.configs import Algorithm


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Directed weighted edges between N nodes; source, target, weight: (E,)."""

    nodes: int
    source: IntArray
    target: IntArray
    weight: NDArray[np.float64]


def neighbour_graph(features: NDArray[np.float32], labels: IntArray, *, k: int, threshold: float) -> Graph:
    """Edges from each row (N, D) to its k nearest by cosine, where the cosine reaches ``threshold``.

    An edge between two rows that carry the same label weighs as much as the strongest of its source; this makes no edge
    of a cosine below the threshold. labels: (N,), −1 where none is given.
    """
    rows = torch.from_numpy(features)
    cosine, neighbour = (t.numpy() for t in nearest_neighbours(rows, rows, k, exclude_self=True))
    same = (labels[:, None] >= 0) & (labels[:, None] == labels[neighbour])
    strongest = cosine[:, :1] if cosine.shape[1] else cosine
    weight = np.where(same, strongest, cosine).astype(np.float64)
    kept = cosine >= threshold
    source = np.broadcast_to(np.arange(len(rows))[:, None], kept.shape)[kept]
    return Graph(nodes=len(rows), source=source, target=neighbour[kept].astype(np.int64), weight=weight[kept])


def find_communities(graph: Graph, algorithm: Algorithm, seed: int) -> IntArray:
    """(N,) community of each node, numbered from 0; a node without edges is alone."""
    groups = _infomap(graph, seed) if algorithm == "infomap" else _louvain(graph, seed)
    _, compact = np.unique(groups, return_inverse=True)
    return compact.astype(np.int64)


def _edges(graph: Graph) -> list[tuple[int, int, float]]:
    return list(zip(graph.source.tolist(), graph.target.tolist(), graph.weight.tolist(), strict=True))


def _infomap(graph: Graph, seed: int) -> IntArray:
    try:
        # Not a dependency (its licence is the GPL), so the type checker must not ask for it.
        infomap: Any = import_module("infomap")
    except ImportError as error:
        raise TrainingError(
            "Finding concepts by Infomap needs the package 'infomap', which is not installed.",
            hint="pip install infomap, or use --set communities=louvain",
        ) from error
    network = infomap.Infomap(two_level=True, directed=True, silent=True, seed=1 + seed % 2**31, num_trials=1)
    network.add_nodes(range(graph.nodes))
    network.add_links(_edges(graph))
    groups = np.arange(graph.nodes, dtype=np.int64) + graph.nodes + 1
    modules: dict[int, int] = dict(network.run().modules())
    groups[list(modules)] = list(modules.values())
    return groups


def _louvain(graph: Graph, seed: int) -> IntArray:
    import networkx  # type: ignore[import-untyped, unused-ignore]

    network = networkx.Graph()
    network.add_nodes_from(range(graph.nodes))
    for source, target, weight in _edges(graph):
        # Undirected: an edge found from both ends counts twice.
        before = network.get_edge_data(source, target, {"weight": 0.0})["weight"]
        network.add_edge(source, target, weight=before + max(weight, 0.0))
    groups = np.empty(graph.nodes, dtype=np.int64)
    for number, members in enumerate(networkx.community.louvain_communities(network, seed=seed % 2**31)):
        groups[list(members)] = number
    return groups
