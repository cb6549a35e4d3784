"""Complement naive Bayes against scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import ComplementNB
from training import machine

from solvers.core.memory import TooLargeError
from solvers.core.problem import Problem


def make(**params: float):
    return machine("complement_naive_bayes", **params)


@pytest.mark.parametrize("smoothing", [0.3, 1.0])
def test_scores_and_weighted_examples_are_those_of_scikit_learn(smoothing: float) -> None:
    rng = np.random.default_rng(0)
    X = sp.random(60, 15, density=0.5, random_state=rng, format="csr")
    y, weights = np.arange(60) % 4, rng.uniform(0.5, 2.0, 60)
    problem = Problem.check(X, y, weights=weights)
    solver = make(smoothing=smoothing)
    (last,) = solver.steps(problem)
    expected = ComplementNB(alpha=smoothing).fit(X, y, sample_weight=weights).predict_joint_log_proba(X)
    np.testing.assert_allclose(solver.model(problem, last.state).scores(problem.X), expected, rtol=1e-5)


def test_what_needs_too_much_memory_is_refused() -> None:
    problem = Problem.check(
        sp.csr_matrix((np.ones(40), np.arange(40), np.arange(41)), (40, 20_000)), np.arange(40) % 20
    )
    with pytest.raises(TooLargeError, match="memory_mb allows 1 MB"):
        next(make(memory_mb=1).steps(problem))
