"""The exchange of weights: the same optimum as by scores in any number of shards, and exact resumption."""

import numpy as np
import pytest
import scipy.sparse as sp
from gangs import run_shards
from problems import optimum, small

from solvers.core.problem import Problem
from solvers.linear.sharded.tournament import halve
from solvers.registry import SOLVERS, parse_params


def text(n=240, d=150, k=19, seed=0):
    """Rows with frequent and rare features, one of them empty, and classes of very different sizes."""
    rng = np.random.default_rng(seed)
    share = np.minimum(1.0, 3.0 / np.arange(1, d + 1))
    X = (rng.random((n, d)) < share) * rng.random((n, d))
    X[5] = 0
    y = np.minimum(rng.zipf(1.5, n), k) - 1
    y[:k] = np.arange(k)
    return Problem.check(sp.csr_matrix(X), y)


def machine(name="weston_watkins", **params):
    return SOLVERS[name](parse_params(name, {"tol": 1e-3, "dtype": "float32"} | params))


def in_shards(solver, problem, size, states=None, kind="weights"):
    def work(exchange):
        state = states[exchange.rank] if states else None
        return [
            (step, {name: np.array(array) for name, array in step.state.items()})
            for step in solver.sharded(problem, exchange, state, kind)
        ]

    return run_shards(size, work)


@pytest.mark.parametrize(
    ("size", "k"),
    [(1, 19), pytest.param(2, 19, marks=pytest.mark.slow), (3, 19), pytest.param(4, 7, marks=pytest.mark.slow)],
)
def test_any_number_of_shards_reaches_the_objective_of_scores_and_agrees_on_all_but_the_weights(size, k):
    # of 8 half-shards of 7 classes, one has none, and leaves the others without a partner
    problem, solver = text(n=120, k=k), machine(tol=1e-2)
    expected = in_shards(solver, problem, 1, kind="scores")[0][-1][0].primal
    shards = in_shards(solver, problem, size)
    step = shards[0][-1][0]
    assert step.converged
    assert step.primal == pytest.approx(expected, rel=1e-2)
    for steps in shards[1:]:
        for (other, state), (first, reference) in zip(steps, shards[0], strict=True):
            assert repr((other.primal, other.dual)) == repr((first.primal, first.dual))
            for name in set(reference) - {"W", "own"}:
                np.testing.assert_array_equal(state[name], reference[name], err_msg=name)


@pytest.mark.slow
def test_the_weights_are_those_of_the_dual_variables_at_every_step():
    problem, solver = text(), machine(dtype="float64", max_epochs=2)
    shards = in_shards(solver, problem, 3)
    for step in range(0, 20, 3):
        state = shards[0][step][1]
        V = np.zeros((problem.n_samples, problem.n_classes))
        for i, (start, length) in enumerate(zip(state["pool_start"], state["pool_length"], strict=True)):
            V[i, state["pool_classes"][start : start + length]] = state["pool_values"][start : start + length]
        np.testing.assert_allclose(V.sum(axis=1), 0.0, atol=1e-12)
        assert (np.delete(V, problem.y, axis=1) <= problem.weights.max()).all()
        W = problem.X.T @ V
        for steps in shards:
            part = solver.part(problem, steps[step][1])
            np.testing.assert_allclose(part.W, W[np.ix_(part.features, part.own)], atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("C", [0.1, 3.0])
def test_the_bounds_enclose_the_optimum_and_meet_there(C):
    problem = small()
    value, _ = optimum("weston_watkins", problem, C)
    solver = machine(C=C, tol=1e-5, dtype="float64", max_epochs=100_000)
    step = in_shards(solver, problem, 2)[1][-1][0]
    assert step.converged
    assert step.dual <= value * (1 + 1e-8)
    assert step.primal == pytest.approx(value, rel=2e-5)


def test_a_resumed_run_repeats_the_uninterrupted_one_bit_for_bit():
    problem, solver = text(), machine(tol=1e-2)
    whole = in_shards(solver, problem, 2)
    for stop in (3, len(whole[0]) // 2, len(whole[0]) - 2):
        resumed = in_shards(solver, problem, 2, [steps[stop][1] for steps in whole])
        for steps, reference in zip(resumed, whole, strict=True):
            assert len(steps) == len(reference) - stop - 1
            for name in reference[-1][1]:
                np.testing.assert_array_equal(steps[-1][1][name], reference[-1][1][name], err_msg=name)


def test_every_pair_of_half_shards_has_one_host_and_every_class_one_half():
    y = np.repeat(np.arange(30), np.arange(30, 0, -1)).astype(np.int32)
    for size in (1, 2, 5):
        owner = (np.arange(30) % size).astype(np.int32)
        halves = halve(owner, y, size)
        assert halves.sizes.sum() == 30
        assert np.ptp(halves.sizes) <= 1
        np.testing.assert_array_equal(halves.host, halves.host.T)
        np.testing.assert_array_equal(np.diag(halves.host)[halves.of], owner)
        visited = np.bincount(halves.host[np.triu_indices(2 * size, 1)], minlength=size)
        assert visited.tolist() == [2 * size - 1] * size


def test_variables_that_share_a_bound_are_refused():
    with pytest.raises(ValueError, match="bound of its own"):
        in_shards(machine("crammer_singer"), text(), 1)
