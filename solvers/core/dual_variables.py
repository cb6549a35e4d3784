"""What certificates, paths in C and trainings on other rows do with the dual variables of any machine.

Every set of dual variables here is a box or a simplex in proportion to C times the example's weight. So a variable is
kept as its share of that: it is feasible at any other C and weight, and where an example or a class is new, its share
is 0. The weights follow from them, whatever has become of the features; and the optimum that the training then goes on
to, with its certificate, is that of the problem it is given, whatever it began from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import SupportsFloat

import numpy as np
import scipy.sparse as sp

from solvers.core.problem import Problem
from solvers.numerics.array_types import Array, Bools, Ints, Ints32


def best_multiple(linear: float, square: float, most: float) -> float:
    """The t in [0, most] with the largest ``t linear - t^2 square / 2``."""
    return min(linear / square, most) if square > 0 else most


def snapped_to_bounds(alpha: Array, bounds: Array) -> Array:
    """Scaled dual variables in their boxes: what rounding keeps from its bound, or lifts above it, is at it exactly."""
    near = bounds * (1.0 - 16.0 * float(np.finfo(alpha.dtype).eps))
    return np.where(alpha >= near, bounds.astype(alpha.dtype), alpha)


def filled(problem: Problem) -> Bools:
    """Which examples have a feature that is not zero, shape (n_samples,); the variables of others change nothing."""
    return np.asarray(problem.X.multiply(problem.X).sum(axis=1)).ravel() > 0


def share(part: SupportsFloat, whole: SupportsFloat) -> float:
    """``part / whole``, 0 of nothing."""
    return float(part) / float(whole) if float(whole) > 0 else 0.0


@dataclass(frozen=True, eq=False)
class DualShares:
    """Dual variables by example and class.

    Attributes
    ----------
    shares : csr_matrix of float32, shape (n_samples, n_classes)
        Each variable by C times the example's weight; not negative.
    labels : int32 array, shape (n_samples,)
        The class of each example.
    classes : tuple of str
    """

    shares: sp.csr_matrix
    labels: Ints32
    classes: tuple[str, ...]

    def onto(self, problem: Problem, former: Ints) -> sp.csr_matrix:
        """The shares of a problem's examples, shape (n_samples, n_classes) of the problem.

        Parameters
        ----------
        problem : Problem
        former : int64 array, shape (n_samples,)
            Which example here each of the problem's is; -1 for a new one. One whose class has changed counts as new.
        """
        column = _places(self.classes, problem.classes)
        there = former >= 0
        there[there] = column[self.labels[former[there]]] == problem.y[there]
        rows = np.where(there, former, 0)
        chosen = sp.csr_matrix(self.shares[rows].multiply(there[:, None]))
        chosen.eliminate_zeros()
        entries = chosen.tocoo()
        kept = column[entries.col] >= 0
        at = (entries.row[kept], column[entries.col[kept]])
        found = sp.csr_matrix((entries.data[kept], at), shape=(problem.n_samples, problem.n_classes))
        found.sort_indices()
        return found


def warm_state(shares: sp.csr_matrix) -> dict[str, Array]:
    """Shares as the state that a training begins from."""
    return {"share_values": shares.data, "share_classes": shares.indices, "share_ends": shares.indptr}


def is_warm(state: Mapping[str, Array]) -> bool:
    """Whether a state is one that :func:`warm_state` has made."""
    return "share_values" in state


def shares_of(state: Mapping[str, Array], n_classes: int) -> sp.csr_matrix:
    """The shares of a state that :func:`warm_state` has made, shape (n_samples, n_classes)."""
    arrays = tuple(np.array(state[name]) for name in ("share_values", "share_classes", "share_ends"))
    return sp.csr_matrix(arrays, shape=(len(state["share_ends"]) - 1, n_classes))


def _places(classes: Sequence[str], among: Sequence[str]) -> Ints:
    place = {name: number for number, name in enumerate(among)}
    return np.array([place.get(name, -1) for name in classes], np.int64)
