"""Every method trains on numbers of any size or refuses them with the way out, never with a bare Python error."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from problems import settings

from solvers.core.base import within_range
from solvers.core.problem import Problem, ProblemError
from solvers.labels.taxonomy import Taxonomy
from solvers.registry import SOLVERS, parse_params

EPOCHS = 30
TREE = Taxonomy.from_edges([("root", "a"), ("root", "b"), ("root", "c")])
Y = np.arange(12) % 3
EXPONENTS = (-300, -100, -16, -12, -6, 0, 6, 12, 14, 19, 22, 60, 150, 307)


def identity() -> np.ndarray:
    return np.eye(3)[Y] * np.array([3.7, 3.5, 2.0])


def noisy() -> np.ndarray:
    return np.eye(3)[Y] + 0.1 * np.random.default_rng(0).standard_normal((12, 3))


def constant() -> np.ndarray:
    return np.ones((12, 2))


def duplicates() -> np.ndarray:
    return np.repeat(noisy()[:4], 3, axis=0)


def apart() -> np.ndarray:
    return noisy() * np.array([1.0, 1e-9, 1e-200])


def alone() -> np.ndarray:
    """Rows that have nothing but a number that is tiny beside those of other rows."""
    return np.eye(3)[Y] * np.array([1.0, 1e-120, 1e-13])


def ends_well(name: str, X: np.ndarray, y: np.ndarray = Y, **params) -> bool:
    """Whether a method trains and answers; False where it refuses."""
    classes = tuple("abc"[: y.max() + 1])
    method = SOLVERS[name]
    fields = method.Params.model_fields
    params |= {"max_epochs": EPOCHS} if "max_epochs" in fields else {}
    params = {key: value for key, value in params.items() if key in fields}
    try:
        problem = Problem.check(sp.csr_matrix(X), y, classes, taxonomy=TREE)
        solver = method(parse_params(name, settings(name, **params)))
        *_, last = within_range(solver.steps(problem), solver.handles.certified)
        answers = solver.model(problem, last.state).top_rows(problem.X, 1)
    except ProblemError:
        return False
    assert all(np.isfinite(scores).all() for _, scores in answers)
    return True


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_numbers_from_the_file_of_an_office_to_the_edge_of_the_floats_train_or_are_refused(name):
    trained = {exponent: ends_well(name, identity() * 10.0**exponent) for exponent in EXPONENTS}
    assert {exponent for exponent, ends in trained.items() if ends} >= {-6, 0, 6}


# tests of jobs train on such rows with each method's own C
@pytest.mark.slow
@pytest.mark.parametrize("C", [1e-8, 1e8])
@pytest.mark.parametrize("rows", [noisy, constant, duplicates, apart, alone])
@pytest.mark.parametrize("name", sorted(name for name in SOLVERS if "C" in SOLVERS[name].Params.model_fields))
def test_odd_rows_of_any_size_train_or_are_refused(name, rows, C):
    for exponent in EXPONENTS[::2]:
        with warnings.catch_warnings(), np.errstate(over="ignore"):
            ends_well(name, rows() * 10.0**exponent, C=C)


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_one_class_and_one_row_are_refused_and_two_rows_train_or_are_refused(name):
    assert not ends_well(name, noisy(), np.zeros(12, int))
    assert not ends_well(name, noisy()[:1], np.zeros(1, int))
    ends_well(name, noisy()[:2], np.arange(2))
