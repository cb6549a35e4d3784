"""Sets of labels of a tree: unions of paths that begin at the root, a boolean row over the nodes for each example.

A set is closed upwards: with a node it holds the node's parent, in a graph all its parents. What is given need not be
so; :func:`closed` adds what is missing and returns what it added, or refuses.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.labels.taxonomy import NAMED, Taxonomy, TaxonomyError
from solvers.labels.tree_paths import Adjacency
from solvers.numerics.array_types import AnyInts, Bools, Ints, Ints32

MissingParents = Literal["add", "refuse"]


@dataclass(frozen=True, eq=False)
class Orphans:
    """Labels that were given without their parents, in the order of the rows.

    Attributes
    ----------
    rows : int64 array, shape (n_orphans,)
    nodes : int32 array, shape (n_orphans,)
        Those given, in a graph once for each parent that was not.
    parents : int32 array, shape (n_orphans,)
        Those that were not given.
    n_added : int
        How many labels the closed sets have more than the given ones.
    """

    rows: Ints
    nodes: Ints32
    parents: Ints32
    n_added: int

    def __len__(self) -> int:
        return len(self.rows)

    def named(self, tree: Taxonomy, most: int = NAMED) -> list[tuple[int, str, str]]:
        """(row, child, parent that was not given) of the first few."""
        named = (self.rows[:most].tolist(), self.nodes[:most].tolist(), self.parents[:most].tolist())
        return [(row, tree.names[node], tree.names[above]) for row, node, above in zip(*named, strict=True)]


def edges_up(nodes: AnyInts, parents: Adjacency) -> tuple[Ints, Ints32]:
    """All pairs of the place of one of these nodes and one of its parents, by place."""
    counts = np.diff(parents.start)[nodes]
    before = np.cumsum(counts) - counts
    at = np.repeat(parents.start[nodes] - before, counts) + np.arange(int(counts.sum()))
    return np.repeat(np.arange(len(counts)), counts), parents.nodes[at]


def are_own(labels: sp.csr_matrix, parents: Adjacency) -> Bools:
    """Which entries of closed sets have no other label of their row below them, shape (n_entries,)."""
    k = len(parents.start) - 1
    row = np.repeat(np.arange(labels.shape[0], dtype=np.int64), np.diff(labels.indptr))
    place, above = edges_up(labels.indices, parents)
    return ~np.isin(row * k + labels.indices, row[place] * k + above)


def own_labels(labels: sp.csr_matrix, parents: Adjacency) -> sp.csr_matrix:
    """The labels of closed sets without those above another label of the same row."""
    own = are_own(labels, parents)
    row = np.repeat(np.arange(labels.shape[0]), np.diff(labels.indptr))[own]
    return sp.csr_matrix((np.ones(len(row), bool), (row, labels.indices[own])), shape=labels.shape)


def closed(
    tree: Taxonomy, indptr: NDArray[np.integer], nodes: NDArray[np.integer], missing_parents: MissingParents = "add"
) -> tuple[sp.csr_matrix, Orphans]:
    """Sets with all ancestors of their labels.

    Parameters
    ----------
    indptr : int array, shape (n_samples + 1,)
    nodes : int array
        The nodes of example i from ``indptr[i]`` to ``indptr[i + 1]``, in any order, repeated or not; a set may be
        empty.
    missing_parents : {"add", "refuse"}
        What to do with a label whose parents are not all given.

    Returns
    -------
    labels : csr_matrix of bool, shape (n_samples, n_nodes)
    orphans : Orphans

    Raises
    ------
    TaxonomyError
        Parents are missing, and are not to be added; the first few are named.
    """
    given, n_nodes = np.asarray(nodes, np.int32), np.int64(tree.n_nodes)
    row = np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))
    keys = np.unique(row * n_nodes + given)
    row, child = keys // n_nodes, (keys % n_nodes).astype(np.int32)
    place, above = edges_up(child, tree.parents)
    lonely = ~np.isin(row[place] * n_nodes + above, keys)
    begin, complete = tree.closure(np.asarray(indptr, np.int64), given)
    alone = place[lonely]
    orphans = Orphans(row[alone], child[alone], above[lonely], len(complete) - len(keys))
    if len(orphans) and missing_parents == "refuse":
        reported = "; ".join(f"row {i} has {a!r:.80} but not {b!r:.80}" for i, a, b in orphans.named(tree))
        more = f" and {len(orphans) - NAMED} more" if len(orphans) > NAMED else ""
        n_alone = len(np.unique(alone))
        given_alone = "1 label is" if n_alone == 1 else f"{n_alone} labels are"
        raise TaxonomyError(f"{given_alone} given without the parent: {reported}{more}")
    shape = (len(indptr) - 1, tree.n_nodes)
    return sp.csr_matrix((np.ones(len(complete), bool), complete, begin), shape=shape), orphans


def with_ancestors(
    tree: Taxonomy, labels: sp.csr_matrix, children: Sequence[int], parents: Sequence[int]
) -> sp.csr_matrix:
    """Sets closed along the tree and along further edges, which with the tree's own are no cycle.

    Parameters
    ----------
    labels : csr_matrix of bool, shape (n_samples, n_nodes)
    children, parents : sequences of int
        The further edges, by number of node.

    Returns
    -------
    csr_matrix of bool, shape (n_samples, n_nodes)
    """
    n = tree.n_nodes
    own = np.flatnonzero(tree.parent >= 0)
    below, above = np.concatenate([own, children]), np.concatenate([tree.parent[own], parents])
    up = sp.csr_matrix((np.ones(len(below), bool), (below, above)), shape=(n, n))
    everything = sp.csr_matrix(sp.identity(n, dtype=bool, format="csr"))
    n_before = 0
    while everything.nnz > n_before:  # as often as the longest way up has steps
        n_before = everything.nnz
        everything = sp.csr_matrix(sp.identity(n, dtype=bool, format="csr") + everything @ up)
    found = sp.csr_matrix(labels @ everything)
    found.sort_indices()
    return found


def of_names(
    tree: Taxonomy, sets: Sequence[Iterable[str]], missing_parents: MissingParents = "add"
) -> tuple[sp.csr_matrix, Orphans]:
    """As :func:`closed`, of labels by name, a collection for each example.

    Raises
    ------
    TaxonomyError
        Also where the tree does not have some label, or text is given in place of a collection of labels.
    """
    texts = [i for i, names in enumerate(sets) if isinstance(names, str)]
    if texts:
        raise TaxonomyError(f"row {texts[0]} has the string {sets[texts[0]]!r:.80} as labels; expected a list")
    rows = [list(names) for names in sets]
    indptr = np.concatenate([[0], np.cumsum([len(names) for names in rows])]).astype(np.int64)
    return closed(tree, indptr, tree.find(name for names in rows for name in names), missing_parents)


def of_nodes(tree: Taxonomy, nodes: NDArray[np.integer]) -> sp.csr_matrix:
    """The path to each node as a set, shape (n_samples, n_nodes); that of -1, the root, is empty."""
    known = nodes >= 0
    indptr = np.concatenate([[0], np.cumsum(known)])
    return closed(tree, indptr, nodes[known])[0]


def names_of(tree: Taxonomy, labels: sp.csr_matrix) -> list[list[str]]:
    """The names in each row, parents before children."""
    named = [tree.names[node] for node in labels.indices.tolist()]
    return [named[begin:end] for begin, end in zip(labels.indptr[:-1], labels.indptr[1:], strict=True)]
