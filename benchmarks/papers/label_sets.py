"""Sets of labels in a tree: parts of real sets that have the sizes of a paper's, and generated ones."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfTransformer

from benchmarks import sets
from solvers.core.problem import Problem
from solvers.labels.taxonomy import Taxonomy

WORDS, TOKENS = 2000, 60
# shares of tokens that come from any node of the document, the rest from all words
OF_LABELS = 0.5
WORDS_OF_A_NODE = 40


class Split(NamedTuple):
    """Examples to train on, with their tree, and those held out."""

    train: Problem
    X: sp.csr_matrix
    labels: sp.csr_matrix


class Shape(NamedTuple):
    """What a generated collection is like: nodes, depth, whether documents have several paths that may end early."""

    n_nodes: int
    depth: int
    several: bool


def part(name: str, tops: tuple[str, ...]) -> tuple[Taxonomy, sp.csr_matrix, sp.csr_matrix, int]:
    """The subtrees below some children of the root: tree, X and sets of the rows that have one of them.

    The rows for training come first, and the last number is how many they are.
    """
    problem, X_test, test = sets.load_sets(name)
    tree = problem.taxonomy
    assert tree is not None
    wanted = {tree.find([top])[0] for top in tops}
    nodes = np.flatnonzero([int(tree.path(j)[0]) in wanted for j in range(tree.n_nodes)])
    number = np.full(tree.n_nodes + 1, -1)
    number[nodes] = np.arange(len(nodes))
    less = Taxonomy(tuple(tree.names[j] for j in nodes), number[tree.parent[nodes]].astype(np.int32))
    kept = [sp.csr_matrix(labels[:, nodes]) for labels in (problem.label_sets(), test)]
    rows = [np.flatnonzero(labels.getnnz(axis=1)) for labels in kept]
    X = sp.vstack([problem.X[rows[0]], X_test[rows[1]]], format="csr")
    labels = sp.vstack([kept[0][rows[0]], kept[1][rows[1]]], format="csr")
    return less, X, labels, len(rows[0])


def split(
    tree: Taxonomy, X: sp.csr_matrix, labels: sp.csr_matrix, n_first: int, sizes: tuple[int, int], seed: int
) -> Split:
    """So many examples for training, of the first ``n_first``, and for testing, of the others, at random."""
    rng = np.random.default_rng(seed)
    train = np.sort(rng.permutation(n_first)[: sizes[0]])
    test = np.sort(n_first + rng.permutation(X.shape[0] - n_first)[: sizes[1]])
    return Split(Problem.check_sets(X[train], labels[train], tree), X[test], sp.csr_matrix(labels[test]))


def generated(shape: Shape, n_rows: int, seed: int = 0) -> tuple[Taxonomy, sp.csr_matrix, sp.csr_matrix]:
    """A random tree and documents about its nodes, TF-IDF rows of length 1.

    Every node has words of its own, of which documents that have the node take some; other words are from all, in
    inverse proportion to their ranks. Deeper nodes are rarer.
    """
    rng = np.random.default_rng([seed, shape.n_nodes])
    tree = _tree(rng, shape)
    leaves = np.flatnonzero(np.diff(tree.first_child)[1:] == 0)
    popular = 1.0 / (1.0 + rng.permutation(len(leaves)))
    popular /= popular.sum()
    own = rng.integers(0, WORDS, (tree.n_nodes, WORDS_OF_A_NODE))
    common = 1.0 / np.arange(1.0, WORDS + 1)
    common /= common.sum()
    counts, chosen = sp.lil_matrix((n_rows, WORDS)), sp.lil_matrix((n_rows, tree.n_nodes), dtype=bool)
    for i in range(n_rows):
        nodes = _nodes(rng, tree, leaves, popular, shape.several)
        chosen[i, nodes] = True
        n_own = rng.binomial(TOKENS, OF_LABELS)
        words = own[rng.choice(nodes, n_own), rng.integers(0, WORDS_OF_A_NODE, n_own)]
        for word in np.concatenate([words, rng.choice(WORDS, TOKENS - n_own, p=common)]).tolist():
            counts[i, word] += 1.0
    X = TfidfTransformer(sublinear_tf=True).fit_transform(counts.tocsr())
    return tree, sp.csr_matrix(X), sp.csr_matrix(chosen)


def _tree(rng: np.random.Generator, shape: Shape) -> Taxonomy:
    names, parents, levels = [], [], []
    for j in range(shape.n_nodes):
        # a third of the nodes below the root, the others below nodes that are not yet at the bottom
        below = [i for i in range(j) if levels[i] < shape.depth]
        above = -1 if not below or j % 3 == 0 else int(rng.choice(below))
        names.append(f"n{j}")
        parents.append(above)
        levels.append(1 if above < 0 else levels[above] + 1)
    return Taxonomy.from_parents(names, parents)


def _nodes(
    rng: np.random.Generator,
    tree: Taxonomy,
    leaves: NDArray[np.int64],
    popular: NDArray[np.float64],
    several: bool,
) -> NDArray[np.int64]:
    """The nodes of a document: a path to a leaf, or several paths, each perhaps only a part of it."""
    n_paths = 1 + int(several and rng.random() < 0.4)
    nodes: set[int] = set()
    for leaf in rng.choice(leaves, n_paths, p=popular).tolist():
        path = [int(node) for node in tree.path(int(leaf)) if node >= 0]
        nodes |= set(path[: rng.integers(1, len(path) + 1)] if several else path)
    return np.array(sorted(nodes))
