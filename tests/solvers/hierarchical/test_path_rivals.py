"""Rivals of a label that has all other nodes as rivals: what is found against a search through all pairs."""

import numpy as np
import pytest
from problems import random_tree

from solvers.hierarchical.hinges.path_rivals import add_up, best_by_distance, worst_of_all
from solvers.numerics.rows import ALIGNMENT


def scored(seed, dtype):
    """A tree of some 80 nodes, its distances, and scores of its nodes, -inf behind the last up to whole vectors."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, int(rng.integers(60, 100)))
    m, width = tree.n_nodes, ALIGNMENT // np.dtype(dtype).itemsize
    z = np.full(-(-m // width) * width, -np.inf, dtype)
    products = rng.standard_normal(m).astype(dtype)
    add_up(tree.arrays.parent, tree.arrays.first_child, products, z)
    expected = [products[tree.arrays.path_nodes[tree.path_start[j] : tree.path_start[j + 1]]].sum() for j in range(m)]
    np.testing.assert_allclose(z[:m], expected, rtol=1e-5, atol=1e-5)
    nodes = np.arange(m)
    return tree, tree.distance(nodes[:, None], nodes[None, :]), z


@pytest.mark.parametrize(
    "dtype", [pytest.param("float32", id="float32"), pytest.param("float64", id="float64", marks=pytest.mark.slow)]
)
def test_the_worst_rivals_are_those_of_a_search_through_all_nodes(dtype):
    for seed in range(4):
        tree, distances, z = scored(seed, dtype)
        m, rivals, violations = tree.n_nodes, np.empty(3, np.int32), np.empty(3)
        for y in range(m):
            expected = distances[y] * (1.0 - float(z[y]) + z[:m].astype(float))
            found = worst_of_all(
                tree.arrays.level, tree.arrays.path_start, tree.arrays.path_nodes, y, z, 3, rivals, violations
            )
            worst = np.sort(expected[expected > 0.0])[::-1][:3]
            assert found == len(worst)
            np.testing.assert_allclose(violations[:found], worst, rtol=1e-5)
            np.testing.assert_allclose(expected[rivals[:found]], violations[:found], rtol=1e-5)


def test_the_largest_scores_at_each_distance_are_those_of_a_search_through_all_nodes():
    for seed in range(4):
        tree, distances, z = scored(seed, "float64")
        m, depth = tree.n_nodes, int(tree.arrays.level[-1])
        low, high = np.empty(depth + 1, np.int32), np.empty(depth + 1, np.int32)
        best, (_, first_child, level, start, nodes) = np.empty(2 * depth + 1), tree.arrays
        for y in range(m):
            best_by_distance(level, start, nodes, first_child, y, z, low, high, best)
            for twice in range(2 * depth + 1):
                at_distance = z[:m][2 * distances[y] == twice]
                assert best[twice] == (at_distance.max() if len(at_distance) else -np.inf)
