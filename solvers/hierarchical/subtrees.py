"""From scores of a label tree's nodes to the margins by which they are in the predicted set."""

from numba import njit

from solvers.numerics.array_types import Floats, Ints32


@njit(cache=True, nogil=True)
def least_on_path(parent: Ints32, F: Floats) -> None:
    """Every score becomes the least one on its node's path; F is (n_samples, n_nodes)."""
    for i in range(F.shape[0]):
        f = F[i]
        for j in range(parent.shape[0]):
            if parent[j] >= 0 and f[parent[j]] < f[j]:
                f[j] = f[parent[j]]


@njit(cache=True, nogil=True)
def best_set(parent: Ints32, F: Floats) -> None:
    """Every score becomes by how much the best closed set with its node is worth more than the best one without it.

    A set is worth the sum of its nodes' scores. Upwards, f_j takes what the best part of its subtree is worth, itself
    in it. Downwards, that part is in the best set with the parent if it is worth more than nothing.
    """
    for i in range(F.shape[0]):
        f = F[i]
        for j in range(parent.shape[0] - 1, -1, -1):
            if parent[j] >= 0 and f[j] > 0.0:
                f[parent[j]] += f[j]
        for j in range(parent.shape[0]):
            if parent[j] >= 0:
                margin = f[parent[j]]
                f[j] = min(f[j], margin) if f[j] > 0.0 else f[j] + min(0.0, margin)
