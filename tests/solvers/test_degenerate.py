"""What every flat method promises where its input is of the odd kind; the rest of it is in test_contract."""

import re
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from problems import settings, small
from training import machine

from solvers.core.base import Solver
from solvers.core.machine import SingleLabelParams
from solvers.core.problem import Problem, ProblemError
from solvers.registry import SOLVERS

FLAT = {name: method for name, method in SOLVERS.items() if method.handles.flat and not method.chooses}
where_certified = pytest.mark.parametrize("name", [name for name, kind in FLAT.items() if kind.handles.certified])
# which estimate their memory themselves, and not by parts that other methods train
BOUNDED = [
    name for name, kind in FLAT.items() if issubclass(kind.Params, SingleLabelParams) and kind.parts != "columns"
]


def solver(name: str, **params) -> Solver:
    return machine(name, **settings(name, **params))


def last_of(steps):
    *_, last = steps
    return last


def many_classes(n: int) -> Problem:
    """As many classes as examples, whose few features, too many for an interior point, are shared by many."""
    rng = np.random.default_rng(0)
    return Problem.check(sp.random(n, 400, density=5 / 400, random_state=rng, format="csr"), np.arange(n))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "label_trees" else ()) for name in BOUNDED]
)
def test_ten_thousand_classes_converge_or_are_refused_with_an_estimate_before_the_memory_is_taken(name):
    allowed = 256
    method, problem = solver(name, tol=0.1, memory_mb=allowed), many_classes(10_000)
    tracemalloc.start()
    try:
        last = last_of(method.steps(problem))
        assert last.converged
        assert method.model(problem, last.state).scores(problem.X[:3]).shape == (3, 10_000)
    except ProblemError as error:
        estimate, limit = re.search(
            r"needs (?:at least|about) ([0-9,]+) MB; memory_mb allows ([0-9,]+)", str(error)
        ).groups()
        assert int(limit) == allowed < int(estimate.replace(",", ""))
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 1.5 * (allowed << 20)


@pytest.mark.parametrize("name", BOUNDED)
def test_a_thousand_classes_of_one_example_converge(name):
    last = last_of(solver(name, tol=0.1).steps(many_classes(1000)))
    assert last.converged


@where_certified
def test_the_same_row_under_every_label_leaves_nothing_to_learn_and_converges(name):
    rows = np.random.default_rng(0).standard_normal((6, 4))
    problem = Problem.check(np.repeat(rows, 3, axis=0), np.tile(np.arange(3), 6))
    # |W - W*|^2 is at most twice the gap, which is of a loss that vanishes nowhere where it is the logistic one
    method = solver(name, tol=1e-4 if name == "softmax" else 1e-3)
    last = last_of(method.steps(problem))
    assert last.converged
    scores = method.model(problem, last.state).scores(problem.X)
    assert np.ptp(scores, axis=1).max() < 0.1


@where_certified
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("C", [1e-8, 1e8])
def test_two_classes_under_an_extreme_weight_of_the_losses_end_with_true_bounds(name, C, dtype):
    base = small(n=20, k=2)
    problem = Problem.check(np.vstack([base.X.toarray()] * 2), np.concatenate([base.y] * 2))
    measured = [s for s in solver(name, C=C, tol=1e-2, dtype=dtype, max_epochs=50).steps(problem) if s.gap == s.gap]
    assert measured
    assert all(np.isfinite([s.primal, s.dual]).all() and s.dual <= s.primal for s in measured)
    assert C > 1 or measured[-1].converged


@where_certified
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_features_of_a_millionfold_scale_at_the_same_weight_of_the_losses_give_true_bounds(name, dtype):
    problem = small(n=30, k=3)
    scaled = Problem.check(problem.X * 1e6, problem.y)
    measured = [s for s in solver(name, tol=1e-2, dtype=dtype, max_epochs=50).steps(scaled) if s.gap == s.gap]
    assert measured
    assert all(np.isfinite([s.primal, s.dual]).all() and s.dual <= s.primal for s in measured)
    assert max(s.dual for s in measured) > 0
