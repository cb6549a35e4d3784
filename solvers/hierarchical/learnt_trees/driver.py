"""Training over learnt label trees: one problem a node, of the node's own rows, and one certificate over all of them.

    minimise  sum over nodes v, children u of v   1/2 |w_u|^2 + C sum_{i below v} max(0, 1 - s_iu w_u' x_i)^2,

s_iu = +1 where the class of i is below u, -1 below its siblings. The problems of the nodes share nothing, so the sums
of their primal and dual values bound the optimum of the whole.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.core.base import Solver, State, Step, relative_gap
from solvers.core.linear_model import LinearModel
from solvers.core.problem import Problem
from solvers.hierarchical.learnt_trees.clustering import LabelTree
from solvers.numerics.array_types import Ints, Ints32
from solvers.numerics.lazy_arrays import Lazy

# of a step: entries of rows times columns, over all its nodes
SLICE_PRODUCTS = 1 << 28


@dataclass(frozen=True, eq=False)
class Node:
    """A node that is no leaf: its rows, and for each the place of the child that it is below.

    Attributes
    ----------
    first, n_children : int
        The columns of the children are adjacent.
    rows : int64 array, shape (n_rows,)
    child : int32 array, shape (n_rows,)
        From 0.
    """

    first: int
    n_children: int
    rows: Ints
    child: Ints32


def nodes_of(trees: list[LabelTree], y: Ints32, n_classes: int) -> list[Node]:
    """The nodes with children of all trees, whose columns are numbered tree by tree."""
    found, offset = [], 0
    for tree in trees:
        above = np.zeros(len(y), np.int32)
        for level in tree.child_of_class(n_classes):
            below = level[y]
            inside = np.flatnonzero(below >= 0)
            order = inside[np.argsort(above[inside], kind="stable")]
            ends = np.flatnonzero(np.diff(above[order], prepend=-1, append=np.iinfo(np.int32).max))
            for begin, end in pairwise(ends.tolist()):
                rows = np.sort(order[begin:end])
                first, stop = np.searchsorted(tree.parent, [above[rows[0]], above[rows[0]] + 1]).tolist()
                found.append(Node(offset + first, stop - first, rows, (below[rows] - first).astype(np.int32)))
            above[inside] = below[inside]
        offset += len(tree.parent)
    return found


@dataclass(eq=False)
class Trained:
    """The weights of the nodes that are trained, in their order, and the sums of their bounds.

    Attributes
    ----------
    trees : list of LabelTree
        They are part of the state, so that nobody need learn them again.
    weights : list of csr_matrix, each of shape (n_children, n_features)
    """

    trees: list[LabelTree]
    weights: list[sp.csr_matrix] = field(default_factory=list)
    primal: float = 0.0
    dual: float = 0.0
    epochs: int = 0

    def state(self) -> State:
        """As arrays, from which :meth:`resumed` makes it again."""
        return Lazy(
            {
                "indptr": lambda: np.concatenate([part.indptr for part in self.weights]),
                "indices": lambda: np.concatenate([part.indices for part in self.weights]),
                "data": lambda: np.concatenate([part.data for part in self.weights]),
                "bounds": lambda: np.array([self.primal, self.dual]),
                "done": lambda: np.array([len(self.weights), self.epochs]),
                "parent": lambda: np.concatenate([tree.parent for tree in self.trees]),
                "label": lambda: np.concatenate([tree.label for tree in self.trees]),
            }
        )

    def merged(self, nodes: list[Node], n_columns: int) -> sp.csr_matrix:
        """The weights of all nodes, float32, shape (n_features, n_columns)."""
        order = np.argsort([node.first for node in nodes])
        counts = np.zeros(n_columns + 1, np.int64)
        for node, part in zip(nodes, self.weights, strict=True):
            counts[node.first + 1 : node.first + node.n_children + 1] = np.diff(part.indptr)
        data, indices = (
            np.concatenate([getattr(self.weights[at], name) for at in order]) for name in ("data", "indices")
        )
        shape = (self.weights[0].shape[1], n_columns)
        return sp.csr_matrix(sp.csc_matrix((data, indices, np.cumsum(counts)), shape=shape))

    @property
    def nbytes(self) -> int:
        """Bytes of the weights."""
        return sum(part.data.nbytes + part.indices.nbytes + part.indptr.nbytes for part in self.weights)

    @classmethod
    def resumed(cls, trees: list[LabelTree], nodes: list[Node], n_features: int, state: State) -> "Trained":
        n_done, epochs = (int(value) for value in state["done"])
        indptrs, indices, data = (np.asarray(state[name]) for name in ("indptr", "indices", "data"))
        weights, at, begin = [], 0, 0
        for place in range(n_done):
            length = nodes[place].n_children
            indptr, begin = indptrs[begin : begin + length + 1], begin + length + 1
            stop = at + int(indptr[-1])
            weights.append(sp.csr_matrix((data[at:stop], indices[at:stop], indptr), shape=(length, n_features)))
            at = stop
        primal, dual = (float(value) for value in state["bounds"])
        return cls(trees, weights, primal, dual, epochs)


def train_nodes(
    problem: Problem, trained: Trained, nodes: list[Node], machine: Solver[Any], check: Callable[[int], None]
) -> Iterator[Step]:
    """Train the machine in one node after the other, ``machine.threads`` of them at once; a step is a slice of nodes.

    Parameters
    ----------
    problem : Problem
        Prepared.
    trained : Trained
        What is trained already; changed in place.
    nodes : list of Node
        Of the trees.
    machine : Solver
        Its models are linear, with a column for each class.
    check : callable
        Given the bytes of the weights so far, raises TooLargeError where that is too much.
    """
    length = np.diff(problem.X.indptr)
    work = [int(length[node.rows].sum()) * node.n_children for node in nodes]
    with ThreadPoolExecutor(machine.threads) as threads:
        while len(trained.weights) < len(nodes):
            begin = stop = len(trained.weights)
            spent = 0
            while stop < len(nodes) and (stop == begin or spent + work[stop] <= SLICE_PRODUCTS * machine.threads):
                spent += work[stop]
                stop += 1
            for last, weights in threads.map(lambda node: _train_node(problem, node, machine), nodes[begin:stop]):
                trained.weights.append(weights)
                trained.primal += last.primal
                trained.dual += last.dual
                trained.epochs = max(trained.epochs, last.epoch)
            check(trained.nbytes)
            ended = stop == len(nodes)
            primal, dual = (trained.primal, trained.dual) if ended else (np.nan, np.nan)
            converged = ended and relative_gap(primal, dual) <= machine.params.tol
            share = {"nodes_trained": float(stop), "nodes": float(len(nodes))}
            yield Step(trained.epochs, primal, dual, np.nan, converged, trained.state(), share)


def _train_node(problem: Problem, node: Node, machine: Solver[Any]) -> tuple[Step, sp.csr_matrix]:
    names = tuple(map(str, range(node.n_children)))
    own = Problem(sp.csr_matrix(problem.X[node.rows]), node.child, names, problem.weights[node.rows])
    *_, last = machine.steps(own)
    model = machine.bare_model(own, last.state)
    assert isinstance(model, LinearModel)
    W = np.ascontiguousarray(model.W[:, : node.n_children].T, np.float32)
    kept = W != 0
    features = model.features[np.nonzero(kept)[1]].astype(np.int32)
    indptr = np.append(0, np.cumsum(np.count_nonzero(kept, axis=1)))
    return last, sp.csr_matrix((W[kept], features, indptr), shape=(node.n_children, problem.n_features))
