"""The dual point of one example of H-M3: the masses that its distribution over label sets gives to nodes and edges.

The paper's marginals, four of each edge (Rousu et al. 2005, equation 4), that agree at the nodes (equation 6), follow
from one mass a node, and over labelings that are not closed one more an edge; at the start all is on the true set.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.numerics.array_types import Bools, Floats, Ints, Ints32
from solvers.numerics.coefficients import Coefficients


class MarkovTree(NamedTuple):
    """A label tree: parents, children in compressed rows, and twice one more than the children of every node."""

    parent: Ints32
    first_child: Ints32
    degree: Floats


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
