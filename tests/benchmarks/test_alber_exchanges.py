"""The exchanges of Alber et al. 2017 reach the service's optimum in any number of shards, and resume exactly."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from benchmarks.papers.exchanges import kinds, sharded
from benchmarks.papers.exchanges.forecast import forecast
from benchmarks.papers.exchanges.mean import MeanTraining
from benchmarks.papers.exchanges.schedule import interleaved, portions, rounds, transfers
from benchmarks.papers.exchanges.tournament import halve
from solvers.core.problem import Problem
from solvers.numerics.rows import arrange
from solvers.numerics.thread_pool import ThreadPool
from solvers.registry import SOLVERS, parse_params
from solvers.sharding.exchange import Hub
from solvers.sharding.plan import Rates
from solvers.sharding.shardable import shardable
from tests.solvers.gangs import run_shards
from tests.solvers.problems import optimum, small


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
            for step in sharded(solver, problem, exchange, state, kind)
        ]

    return run_shards(size, work)


@pytest.mark.parametrize(
    ("size", "k"),
    [
        pytest.param(1, 19, marks=pytest.mark.slow),
        pytest.param(2, 19, marks=pytest.mark.slow),
        (3, 19),
        pytest.param(4, 7, marks=pytest.mark.slow),
    ],
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
            part = shardable(solver).part(problem, steps[step][1])
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


def test_only_variables_with_bounds_of_their_own_can_be_cut_into_pairs():
    assert {name: kinds(kind) for name, kind in SOLVERS.items() if kind.handles.shards and len(kinds(kind)) > 1} == {
        "weston_watkins": ("scores", "weights")
    } | dict.fromkeys(("lee_lin_wahba", "absolute_sum", "reinforced", "maximum_margin_regression"), ("sums", "mean"))


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("name", ["lee_lin_wahba", "absolute_sum", "reinforced", "maximum_margin_regression"])
def test_with_the_mean_held_the_bounds_enclose_the_optimum_and_meet_there(name, size):
    problem = small()
    value, _ = optimum(name, problem, 0.5)
    solver = machine(name, C=0.5, tol=1e-5, dtype="float64", max_epochs=100_000, algorithm="ascent")
    for steps in in_shards(solver, problem, size, kind="mean"):
        step = steps[-1][0]
        assert step.converged
        assert step.dual <= value * (1 + 1e-8)
        assert step.primal == pytest.approx(value, rel=2e-5)


def test_with_the_mean_held_a_training_takes_the_same_steps_in_any_number_of_shards():
    problem, solver = text(n=60, d=30, k=7), machine("lee_lin_wahba", dtype="float64", max_epochs=4, algorithm="ascent")
    expected, *others = (in_shards(solver, problem, size, kind="mean")[0] for size in (1, 2, 3))
    for steps in others:
        assert len(steps) == len(expected)
        for (step, _), (reference, _) in zip(steps, expected, strict=True):
            assert (step.primal, step.dual) == pytest.approx((reference.primal, reference.dual), rel=1e-10, nan_ok=True)


def test_with_the_mean_held_the_dual_rises_at_every_tenth_and_the_weights_are_those_of_the_dual_variables():
    problem, solver = text(n=60, d=30, k=7), machine("lee_lin_wahba", C=3.0, dtype="float64", algorithm="ascent")
    k, rows = problem.n_classes, np.arange(problem.n_samples)
    X = problem.X[:, arrange(problem.X, np.dtype(np.float64))[1]]
    with ThreadPool(1) as thread_pool:
        plan, exchange = shardable(solver).plan(problem), Hub(1).exchange(0)
        training = MeanTraining(problem, plan, solver.margins(k), exchange, thread_pool)
        duals = [0.0]
        for examples in np.array_split(np.tile(training.filled, 4), 40):
            training._alternate(examples)
            assert (training.alpha[rows, problem.y] == 0.0).all()
            u = -(X.T @ training.alpha)
            np.testing.assert_allclose(training.shard.W[:, :k], u - u.mean(axis=1, keepdims=True), atol=1e-12)
            duals.append(training.alpha.sum() - 0.5 * (training.shard.W**2).sum())
    assert (np.diff(duals) >= -1e-12 * np.abs(duals[1:])).all()
    assert duals[-1] > 1.02 * duals[10] > 0.0


def test_the_forecast_counts_rounds_and_the_memory_that_travels():
    counts = np.full(1000, 13)
    mean, weights = (forecast(counts, 60_000, 4_600_000, 2, 4, 1, Rates(), kind) for kind in ("mean", "weights"))
    assert (mean.rounds, weights.rounds) == (23, 53)
    assert weights.shares[0].memory_bytes > 3 * 4 * 60_000 * 500
    assert mean.bytes < weights.bytes


shards = st.integers(1, 40)


@hypothesis_settings(deadline=None, derandomize=True)
@given(shards)
def test_every_pair_of_half_shards_meets_once(n):
    met = sorted((min(pair), max(pair)) for hosts in rounds(n) for pair in hosts)
    assert met == list(combinations(range(2 * n), 2))


@hypothesis_settings(deadline=None, derandomize=True)
@given(shards)
def test_every_shard_is_busy_in_every_round(n):
    for hosts in rounds(n):
        assert sorted(half for halves in hosts for half in halves) == list(range(2 * n))


@hypothesis_settings(deadline=None, derandomize=True)
@given(shards)
def test_each_shard_sends_and_receives_at_most_one_half_a_side_and_all_return_to_their_hosts(n):
    hostings = list(rounds(n))
    place = {half: shard for shard, halves in enumerate(hostings[0]) for half in halves}
    for before, after in zip(hostings, [*hostings[1:], hostings[0]], strict=True):
        travel = transfers(before, after)
        for shard in range(n):
            sent, received = (sum(transfer[end] == shard for transfer in travel) for end in (1, 2))
            assert sent == received <= 2
        for half, origin, target in travel:
            assert place[half] == origin
            place[half] = target
    assert place == {half: shard for shard, halves in enumerate(hostings[0]) for half in halves}


def test_portions_hold_every_example_once():
    parts = portions(np.arange(103, dtype=np.int32), np.random.default_rng(0))
    assert len(parts) == 10
    assert sorted(np.concatenate(parts).tolist()) == list(range(103))


def test_a_pair_mixes_the_examples_of_both_sides_and_takes_no_other():
    y = np.array([0, 1, 2, 3, 0, 3, 1], np.int32)
    half_of = np.array([0, 1, 2, 0], np.int32)
    order = np.array([6, 5, 4, 3, 2, 1, 0], np.int32)
    assert interleaved(half_of, y, order, (0, 2)).tolist() == [5, 4, 3, 2, 0]
    assert interleaved(half_of, y, order, (1, 1)).tolist() == [6, 1]
