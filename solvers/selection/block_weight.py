"""The weight of a block of features beside the others, chosen on held-out rows.

The columns of the block are multiplied by one weight after the other: upwards from 1 as long as the log loss falls, and
down from 1 if it did not fall at all. Each is measured by one linear machine, trained loosely on some of the rows.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from solvers.core.methods import all_methods, parse
from solvers.core.problem import Problem
from solvers.numerics.array_types import Ints
from solvers.selection.held_out import Fold, thinned

UP, DOWN = (1.0, 2.0, 4.0), (0.5, 0.25)
# of one label an example and of sets, whose labels are nodes of a tree
MOST_ROWS, MOST_SETS = 4000, 2000
_MACHINE = {"loss": "squared_hinge", "bias": 1.0}


class ChosenWeight(NamedTuple):
    """The weight of the least log loss, and the log loss of each weight that was tried."""

    weight: float
    log_losses: Mapping[float, float]


def chosen_weight(problem: Problem, block: Ints, seed: int = 0) -> ChosenWeight:
    """Choose the weight of some columns.

    Parameters
    ----------
    problem : Problem
        Names of concepts are left aside.
    block : int64 array, shape (n_columns,)
        The columns of the features that are weighed.
    """
    few = _some_rows(problem.of_terms, seed)
    tried: dict[float, float] = {}

    def best_of(weights: tuple[float, ...]) -> float:
        for weight in weights:
            tried[weight] = _log_loss(_weighed(few, block, weight), seed)
            if tried[weight] > min(tried.values()):
                break
        return min(tried, key=lambda weight: tried[weight])

    weight = best_of(UP)
    return ChosenWeight(weight if weight > 1.0 else best_of(DOWN), tried)


def _some_rows(problem: Problem, seed: int) -> Problem:
    n = problem.n_samples
    if problem.labels is not None:
        return Fold(thinned(np.arange(n), MOST_SETS, seed), np.arange(0)).problem(problem)
    return Fold(np.arange(n), np.arange(0)).sketch(problem.y, MOST_ROWS, seed).problem(problem)


def _weighed(problem: Problem, block: Ints, weight: float) -> Problem:
    factors = np.ones(problem.n_features)
    factors[block] = weight
    X = sp.csr_matrix(
        (problem.X.data * factors[problem.X.indices], problem.X.indices, problem.X.indptr), problem.X.shape
    )
    return replace(problem, X=X)


def _log_loss(problem: Problem, seed: int) -> float:
    """On the rows that one trial of `auto` holds out."""
    machine = "one_vs_rest" if problem.labels is None else "node_svm"
    auto = all_methods()["auto"]
    candidates = [{"solver": machine, "params": _MACHINE}]
    solver = auto(parse(auto, {"candidates": candidates, "most_members": 1, "folds": 1}), seed=seed)
    trial = next(step for step in solver.steps(problem) if "log_loss" in step.measures)
    return trial.measures["log_loss"]
