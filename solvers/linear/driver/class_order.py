"""The order in which classes lie in memory: the frequent ones first, so that they share cache lines."""

import numpy as np

from solvers.core.problem import Problem
from solvers.numerics.array_types import Ints32


def rank_of_classes(problem: Problem) -> Ints32:
    """The column of W that belongs to each class, int32 array, shape (n_classes,)."""
    rank = np.empty(problem.n_classes, np.int32)
    rank[order_of_classes(problem)] = np.arange(problem.n_classes, dtype=np.int32)
    return rank


def order_of_classes(problem: Problem) -> Ints32:
    """The class that each column of W belongs to, int32 array, shape (n_classes,)."""
    return np.argsort(-np.bincount(problem.y, minlength=problem.n_classes), kind="stable").astype(np.int32)
