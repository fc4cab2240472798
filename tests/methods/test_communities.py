"""Neighbour graphs and their communities, with both algorithms."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from gcdbench.core.errors import TrainingError
from gcdbench.methods.algorithms import communities
from gcdbench.methods.algorithms.communities import Graph, find_communities, neighbour_graph
from gcdbench.methods.configs import Algorithm, default_algorithm

HAS_INFOMAP = importlib.util.find_spec("infomap") is not None
BOTH = [
    "louvain",
    pytest.param("infomap", marks=pytest.mark.skipif(not HAS_INFOMAP, reason="the package infomap is not installed")),
]


def edges_by_loops(features: np.ndarray, labels: np.ndarray, k: int, threshold: float) -> set[tuple[int, int, float]]:
    unit = features.astype(np.float64) / np.linalg.norm(features, axis=1, keepdims=True)
    edges = set()
    for i in range(len(unit)):
        cosines = [(float(unit[i] @ unit[j]), j) for j in range(len(unit)) if j != i]
        near = sorted(cosines, reverse=True)[:k]
        for cosine, j in near:
            if cosine >= threshold:
                weight = near[0][0] if labels[i] >= 0 and labels[i] == labels[j] else cosine
                edges.add((i, j, round(weight, 4)))
    return edges


def test_the_graph_is_the_one_found_by_loops() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(20, 4)).astype(np.float32)
    labels = np.where(rng.random(20) < 0.5, rng.integers(0, 2, 20), -1)
    graph = neighbour_graph(features, labels, k=5, threshold=0.3)
    weights = np.round(graph.weight, 4).tolist()
    made = set(zip(graph.source.tolist(), graph.target.tolist(), weights, strict=True))
    assert made == edges_by_loops(features, labels, 5, 0.3)
    unlabelled = neighbour_graph(features, np.full(20, -1), k=5, threshold=0.3)
    assert not np.array_equal(unlabelled.weight, graph.weight)
    assert np.array_equal(unlabelled.target, graph.target)  # a label strengthens an edge and makes none


def test_hidden_classes_do_not_strengthen_an_edge() -> None:
    """Both ends need a label; the published code asked for one only."""
    features = np.random.default_rng(1).normal(size=(12, 3)).astype(np.float32)
    none = np.full(12, -1)
    one = none.copy()
    one[0] = 0
    plain, labelled = (neighbour_graph(features, labels, k=4, threshold=-1.0) for labels in (none, one))
    assert np.array_equal(plain.weight, labelled.weight)


def test_graphs_of_very_few_points() -> None:
    for count in (1, 2):
        graph = neighbour_graph(np.ones((count, 3), dtype=np.float32), np.full(count, -1), k=5, threshold=0.5)
        assert graph.nodes == count
        assert len(graph.source) == (0 if count == 1 else 2)


def two_cliques() -> Graph:
    """Nodes 0–4 and 5–9, a weak bridge, and node 10 alone."""
    edges = [(i, j, 1.0) for part in (range(5), range(5, 10)) for i in part for j in part if i != j]
    edges.append((4, 5, 0.05))
    source, target, weight = (np.array(column) for column in zip(*edges, strict=True))
    return Graph(nodes=11, source=source, target=target, weight=weight.astype(np.float64))


@pytest.mark.parametrize("algorithm", BOTH)
def test_cliques_are_communities_and_a_lonely_node_is_its_own(algorithm: Algorithm) -> None:
    found = find_communities(two_cliques(), algorithm, seed=3)
    assert len(set(found[:5])) == len(set(found[5:10])) == 1
    assert len({found[0], found[5], found[10]}) == 3
    assert sorted(set(found)) == [0, 1, 2]


@pytest.mark.parametrize("algorithm", BOTH)
def test_the_seed_decides_and_no_edge_is_no_problem(algorithm: Algorithm) -> None:
    rng = np.random.default_rng(0)
    graph = neighbour_graph(rng.normal(size=(60, 3)).astype(np.float32), np.full(60, -1), k=4, threshold=-1.0)
    assert np.array_equal(find_communities(graph, algorithm, 1), find_communities(graph, algorithm, 1))
    empty = Graph(nodes=3, source=np.zeros(0, int), target=np.zeros(0, int), weight=np.zeros(0))
    assert sorted(find_communities(empty, algorithm, 1)) == [0, 1, 2]


def test_without_the_package_the_default_is_louvain_and_infomap_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("gcdbench.methods.configs.find_spec", lambda name: None)
    monkeypatch.setattr(communities, "import_module", missing)
    assert default_algorithm() == "louvain"
    with pytest.raises(TrainingError, match="not installed"):
        find_communities(two_cliques(), "infomap", 0)
