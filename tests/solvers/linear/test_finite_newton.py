"""Newton's method for the squared hinge: against block ascent, a convex solver, and its own promises."""

import numpy as np
import pytest
import scipy.sparse as sp
import training
from problems import optimum, small

import solvers.linear.finite_newton
from solvers.core.base import ParamsError
from solvers.core.problem import Problem
from solvers.linear.finite_newton import certificate, iterations
from solvers.registry import parse_params


def machine(algorithm="newton", **params):
    return training.machine("one_vs_rest", **({"loss": "squared_hinge", "algorithm": algorithm, "tol": 1e-9} | params))


def trained(method, problem):
    steps = [(step.epoch, step.primal, step.gap, {k: np.array(v) for k, v in step.state.items()}, step.converged)
             for step in method.steps(problem)]  # fmt: skip
    return steps, method.model(problem, steps[-1][3])


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_it_ends_at_the_optimum_that_a_convex_solver_and_block_ascent_find(C):
    problem = small(n=80, d=10, k=4)
    steps, model = trained(machine(C=C), problem)
    value, W = optimum("one_vs_rest, squared hinge", problem, C)
    assert steps[-1][4]
    assert steps[-1][1] == pytest.approx(value, rel=1e-7)
    np.testing.assert_allclose(model.coef, W, atol=1e-4 * np.abs(W).max())
    ascent, other = trained(machine("ascent", C=C, dtype="float64", max_epochs=100_000), problem)
    assert ascent[-1][1] == pytest.approx(steps[-1][1], rel=1e-8)
    np.testing.assert_allclose(other.coef, model.coef, atol=1e-3 * np.abs(W).max())


def test_few_iterations_are_enough_and_every_one_is_certified():
    steps, _ = trained(machine(C=10.0), small(n=300, d=20, k=6))
    assert len(steps) < 20
    primal = [step[1] for step in steps]
    assert (np.diff(primal) <= 1e-9 * primal[0]).all()
    assert all(step[2] >= 0 for step in steps)


@pytest.mark.parametrize("slices", [2e10, 1.0])
def test_a_resumed_run_repeats_the_uninterrupted_one_bit_for_bit(slices, monkeypatch):
    monkeypatch.setattr(solvers.linear.finite_newton, "SLICE_PRODUCTS", slices)
    problem = small(n=100, d=12, k=5)
    steps, _ = trained(machine(), problem)
    assert len(steps) > 3
    for at in range(len(steps) - 1):
        rest = list(machine().steps(problem, steps[at][3]))
        assert len(rest) == len(steps) - at - 1
        for key, array in steps[-1][3].items():
            np.testing.assert_array_equal(rest[-1].state[key], array)


def test_examples_that_a_column_leaves_out_change_nothing_there():
    rng = np.random.default_rng(3)
    X, signs = rng.standard_normal((60, 5)), rng.integers(-1, 2, (60, 3))
    *_, last = iterations(X, signs, np.full(60, 2.0), None)
    for column in range(3):
        inside = signs[:, column] != 0
        *_, alone = iterations(X[inside], signs[inside, column : column + 1], np.full(inside.sum(), 2.0), None)
        np.testing.assert_allclose(last.state["W"][column], alone.state["W"][0], atol=1e-9)


@pytest.mark.parametrize("C", [1e-8, 1e8])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_extremes_end_with_true_bounds(C, scale):
    problem = small(n=60, d=8, k=3)
    X = sp.vstack([problem.X * scale, sp.csr_matrix((3, 8))])
    last = list(machine(C=C, max_epochs=100).steps(Problem.check(X, np.concatenate([problem.y, [0, 1, 2]]))))[-1]
    assert np.isfinite([last.primal, last.dual]).all()
    assert 0 <= last.gap < 1


def test_the_certificate_is_a_bound_at_any_weights():
    rng = np.random.default_rng(0)
    X, signs, costs = rng.standard_normal((40, 6)), rng.choice([-1, 1], (40, 2)), rng.uniform(0.5, 2.0, 40)
    *_, last = iterations(X, signs, costs, None)
    for _ in range(20):
        primal, dual, _ = certificate(X, signs, costs, rng.standard_normal((2, 6)))
        assert dual <= last.primal * (1 + 1e-12)
        assert primal >= last.dual * (1 - 1e-12)


def test_auto_takes_it_for_few_dense_features_alone():
    dense, sparse = small(density=0.9), small(density=0.1)
    assert machine("auto")._newton(dense)
    assert not machine("auto")._newton(sparse)
    assert not machine("ascent")._newton(dense)
    assert not training.machine("one_vs_rest")._newton(dense)
    with pytest.raises(ParamsError, match="squared_hinge"):
        parse_params("one_vs_rest", {"algorithm": "newton"})
