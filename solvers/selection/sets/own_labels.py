"""The own labels of rows: of a closed set the labels that have none below them in the same row."""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from solvers.core.problem import Problem
from solvers.hierarchical import subtrees
from solvers.labels.label_sets import own_labels
from solvers.labels.taxonomy import Taxonomy
from solvers.labels.tree_paths import Adjacency
from solvers.numerics.array_types import Bools, Floats


def ranked_labels(own: sp.csr_matrix) -> Bools:
    """The labels that some row has as its own, shape (n_labels,)."""
    return np.asarray(np.bincount(own.indices, minlength=own.shape[1]) > 0)


def has_own_inner(problem: Problem) -> bool:
    """Whether some row has a label as its own that has labels below it; without such rows a tree hides no own label."""
    if problem.labels is None or problem.tree.depth == 1:
        return False
    ranked = ranked_labels(own_labels(problem.labels, problem.tree.parents))
    return bool(ranked[problem.tree.parents.nodes].any())


def flat_problem(problem: Problem) -> Problem:
    """The same rows with their own labels alone, and no tree over the labels, which stay the same classes."""
    assert problem.labels is not None
    flat = Taxonomy(problem.tree.names, np.full(problem.tree.n_nodes, -1, np.int32))
    return replace(problem, taxonomy=flat, labels=own_labels(problem.labels, problem.tree.parents))


def closed(log_odds: Floats, ranked: Bools, parents: Adjacency) -> Floats:
    """The best log-odds of an own label at or below each node, shape (n_rows, n_nodes); -inf where there is none."""
    found = np.where(ranked, log_odds, -np.inf)
    subtrees.best_below(parents, found)
    return found
