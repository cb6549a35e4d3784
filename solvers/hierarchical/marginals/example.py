"""The dual point of one example of H-M3: the masses that its distribution over label sets gives to nodes and edges.

The paper's marginals, four of each edge (Rousu et al. 2005, equation 4), that agree at the nodes (equation 6), follow
from one mass a node, and over labelings that are not closed one more an edge; at the start all is on the true set.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.labels.taxonomy import Taxonomy
from solvers.labels.tree_paths import Adjacency
from solvers.numerics.array_types import Bools, Floats, Ints, Ints32
from solvers.numerics.coefficients import Coefficients


class GraphEdges(NamedTuple):
    """All edges of a label graph but the root's; of a tree, whose masses need none of them, nothing.

    ``parents`` and ``children`` of every node in compressed rows; the edges one by one as pairs of ``below`` and
    ``above``, ascending by child. ``share`` is one over the number of a node's parents.
    """

    parents: Adjacency
    children: Adjacency
    below: Ints32
    above: Ints32
    share: Floats


class MarkovTree(NamedTuple):
    """A label tree: parents, children in compressed rows, and twice the number of every node's edges.

    A label graph has all its edges in ``edges``, and the root's count one for each child of the root alone.
    """

    parent: Ints32
    first_child: Ints32
    degree: Floats
    edges: GraphEdges


def markov_tree(tree: Taxonomy) -> MarkovTree:
    """A label tree for compiled code."""
    none = Adjacency(np.zeros(1, np.int64), np.empty(0, np.int32))
    nothing = GraphEdges(none, none, none.nodes, none.nodes, np.empty(0))
    degree = 2.0 * (1.0 + np.diff(tree.first_child)[1:])
    return MarkovTree(tree.parent, tree.first_child, degree, nothing)


def markov_graph(tree: Taxonomy) -> MarkovTree:
    """A label graph for compiled code."""
    start, above = tree.parents
    n_parents = np.maximum(np.diff(start), 1)
    below = np.repeat(np.arange(tree.n_nodes, dtype=np.int32), np.diff(start))
    n_children = np.bincount(above, minlength=tree.n_nodes)
    degree = 2.0 * (n_parents + n_children).astype(np.float64)
    first = np.concatenate([[0], np.cumsum(n_children)]).astype(np.int64)
    children = Adjacency(first, below[np.argsort(above, kind="stable")])
    edges = GraphEdges(tree.parents, children, below, above, 1.0 / n_parents)
    return MarkovTree(tree.parent, tree.first_child, degree, edges)


class Sets(NamedTuple):
    """The true sets in compressed rows, the bounds, and which loss they are of.

    ``worth`` is what each node counts, ``hierarchical`` whether only under a right parent. ``edges`` says whether all
    labelings compete with the true set, so that edges have masses behind those of the nodes, else closed ones alone.
    """

    indptr: Ints
    nodes: Ints32
    bound: Floats
    worth: Floats
    hierarchical: bool
    edges: bool


class Example(NamedTuple):
    """One example: scores A' x, the loss of each mass, the dual's gradient in the masses, the masses now and before.

    ``is_true`` flags where the masses of the true set are, ``best`` the best set or labeling; ``direction`` is scratch.
    """

    scores: Floats
    loss: Floats
    gradient: Floats
    mass: Floats
    before: Floats
    direction: Floats
    is_true: Bools
    best: Bools


@njit(cache=True, nogil=True)
def blank_example(tree: MarkovTree, sets: Sets, width: int) -> Example:
    """Room for one example; ``width`` is that of A, padding included."""
    m = tree.parent.shape[0]
    n = 2 * m if sets.edges else m
    return Example(
        np.zeros(width), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n),
        np.zeros(n, np.bool_), np.zeros(m, np.bool_),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def load_masses(sets: Sets, pool: Coefficients, i: int, example: Example) -> None:
    """The masses of example i: those of the pool, else all on the true set."""
    # numba counts references to an array each time a field is read: fields are read once before inner loops
    p, is_true, bound, classes, values = example.mass, example.is_true, sets.bound[i], pool.classes, pool.values
    for j in range(p.shape[0]):
        p[j] = bound if is_true[j] else 0.0
    for at in range(pool.start[i], pool.start[i] + pool.length[i]):
        p[classes[at]] = values[at]
