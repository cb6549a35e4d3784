"""The own labels of rows: of a closed set the labels that have none below them in the same row."""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit

from solvers.core.problem import Problem
from solvers.hierarchical import subtrees
from solvers.labels.label_sets import own_labels
from solvers.labels.taxonomy import Taxonomy
from solvers.labels.tree_paths import Adjacency
from solvers.numerics.array_types import Bools, Floats

# of the probability of an inner node, that a row has it as its own label at least
LEAST_OWN = 1e-6


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


def of_own(log_odds: Floats, ranked: Bools, parents: Adjacency) -> Floats:
    """By what own labels are ranked, from log-odds of nodes that never rise on the way down; both (n_rows, n_nodes).

    A row has a node as its own label as far as it has none below it: the probability of an inner node is lessened by
    the largest of its children's. Other nodes keep their log-odds.

    Parameters
    ----------
    ranked : bool array, shape (n_nodes,)
        The labels that some row has as its own; the others keep their log-odds, too.
    """
    below = np.repeat(np.arange(len(parents.start) - 1), np.diff(parents.start))
    order = np.argsort(parents.nodes, kind="stable")
    order = order[ranked[parents.nodes[order]]]
    if not len(order):
        return log_odds
    inner, begin = np.unique(parents.nodes[order], return_index=True)
    whole, parts = expit(log_odds[:, inner]), expit(log_odds[:, below[order]])
    own = np.maximum(whole - np.maximum.reduceat(parts, begin, axis=1), LEAST_OWN * whole)
    found = log_odds.copy()
    found[:, inner] = np.minimum(logit(own), log_odds[:, inner])
    return found
