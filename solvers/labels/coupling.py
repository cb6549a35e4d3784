"""How strongly the weights of a label tree's nodes are coupled: the matrix K of the regulariser, checked and repaired.

Zhou et al. 2011, equation 5: ``Omega(W) = 1/2 sum_ij K_ij |w_i . w_j|`` is strongly convex where the comparison matrix
of K, its entries off the diagonal negative, is positive definite (their Theorem 1 and Corollary 2).
"""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from solvers.labels import tree_factor
from solvers.labels.taxonomy import Taxonomy
from solvers.numerics.array_types import Floats, Ints

Repair = Literal["refuse", "scale", "raise"]

# what a repair aims at for the smallest eigenvalue, as a share of the smallest diagonal entry
ROOM = 0.1
HALVINGS = 100


class CouplingError(ValueError):
    """K is no matrix that makes the regulariser convex; the message names the entry or the eigenvalue."""


def by_size(tree: Taxonomy, alpha: float) -> Floats:
    """K of Zhou et al. 2011, equation 6: subtree sizes on the diagonal, alpha between nodes and their ancestors.

    Returns
    -------
    float64 array, shape (len(tree.path_nodes),)
        Entries of every node with the nodes of its path, itself the last.
    """
    K = np.full(len(tree.path_nodes), float(alpha))
    K[diagonal(tree)] = tree.subtree_size
    return K


def diagonal(tree: Taxonomy) -> Ints:
    """The place of each node's entry with itself among those along the paths."""
    return tree.path_start[1:] - 1


def with_entries(tree: Taxonomy, K: Floats, entries: Sequence[tuple[str, str, float]]) -> Floats:
    """K with some of its entries replaced, each given by two names and a value.

    Raises
    ------
    CouplingError
        The two nodes are not the same, nor one the ancestor of the other; a value is negative, or not positive on
        the diagonal; an entry is given twice.
    TaxonomyError
        A name is not in the tree.
    """
    K, seen = K.copy(), set()
    for one, other, value in entries:
        i, j = sorted(tree.find([one, other]).tolist())
        at = np.flatnonzero(tree.path(j) == i)
        if len(at) == 0:
            raise CouplingError(
                f"neither of {one!r:.80} and {other!r:.80} is an ancestor of the other, so K between them is 0"
            )
        if not np.isfinite(value) or value < 0 or (i == j and value == 0):
            raise CouplingError(f"K of {one!r:.80} and {other!r:.80} must be positive; got {value:g}")
        if (i, j) in seen:
            raise CouplingError(f"K of {one!r:.80} and {other!r:.80} is given twice")
        seen.add((i, j))
        K[tree.path_start[j] + at[0]] = value
    return K


def comparison(tree: Taxonomy, K: Floats) -> Floats:
    """The comparison matrix of Zhou et al. 2011, section 3.1: K with all entries off its diagonal negative."""
    compared = -K
    compared[diagonal(tree)] *= -1.0
    return compared


def smallest_eigenvalue(tree: Taxonomy, matrix: Floats) -> float:
    """The smallest eigenvalue of a symmetric matrix along the paths, by bisection, to the precision of floats.

    A number is below all eigenvalues if and only if subtracting it leaves the matrix positive definite, which a
    factorisation without fill-in decides.
    """
    d = matrix[diagonal(tree)]
    sums = np.zeros(tree.n_nodes)
    owner = np.repeat(np.arange(tree.n_nodes), tree.level)
    off = np.abs(matrix)
    off[diagonal(tree)] = 0.0
    np.add.at(sums, owner, off)
    np.add.at(sums, tree.path_nodes, off)
    low, high = float((d - sums).min()), float(d.min())
    if low == high:
        return high
    scratch = np.empty_like(matrix)
    return _bisected(lambda shift: tree_factor.factor(tree.arrays, matrix, shift, scratch), low, high, 1e-14)


def convex(tree: Taxonomy, K: Floats, repair: Repair) -> Floats:
    """K itself where its comparison matrix is positive definite, else K repaired.

    Parameters
    ----------
    K : float64 array, shape (len(tree.path_nodes),)
    repair : "refuse", "scale" or "raise"
        ``scale`` multiplies what is off the diagonal by one factor, ``raise`` adds one number to the diagonal, until
        the smallest eigenvalue is a tenth of the smallest diagonal entry of K.

    Raises
    ------
    CouplingError
        The comparison matrix is not positive definite, and ``repair`` is "refuse".
    """
    own, compared, scratch = diagonal(tree), comparison(tree, K), np.empty_like(K)
    # below this a factor exists and means nothing
    if tree_factor.factor(tree.arrays, compared, 1e-10 * float(K[own].max()), scratch):
        return K
    target = ROOM * float(K[own].min())
    if repair != "scale":
        least = smallest_eigenvalue(tree, compared)
        if repair == "refuse":
            raise CouplingError(
                f"the smallest eigenvalue of the comparison matrix of K is {least:.4g}; the regulariser is strongly "
                f"convex only where it is positive: set repair to raise or scale, or take a smaller alpha than with "
                f"this label tree of {tree.depth} levels, or larger diagonal entries"
            )
        raised = K.copy()
        raised[own] += target - least
        return raised

    def scaled(share: float) -> Floats:
        tried = K * share
        tried[own] = K[own]
        return tried

    def is_convex(share: float) -> bool:
        return bool(tree_factor.factor(tree.arrays, comparison(tree, scaled(share)), target, scratch))

    return scaled(_bisected(is_convex, 0.0, 1.0))


def _bisected(holds: Callable[[float], bool], low: float, high: float, precision: float = 0.0) -> float:
    """The largest number found between ``low``, where a condition holds, and ``high``, above which it does not."""
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if not low < middle < high or high - low <= precision * max(abs(low), abs(high)):
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
