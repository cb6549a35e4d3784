"""Predictions of a training in shards, held against what it took."""

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.problem import Problem
from solvers.sharding.crew import Crew
from solvers.sharding.exchange import Hub
from solvers.sharding.plan import Rates, forecast
from solvers.sharding.shard import Plan, _Training
from solvers.sharding.subproblem import BOX


def text(n=3000, d=4000, k=120, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.concatenate([np.arange(k), rng.integers(0, k, n - k)])).astype(np.int32)
    shared = np.minimum(rng.zipf(1.3, (n, 20)), d) - 1
    own = (y[:, None] * 31 + rng.integers(0, 30, (n, 10))) % d
    columns = np.hstack([shared, own])
    rows = np.repeat(np.arange(n), columns.shape[1])
    X = sp.csr_matrix((rng.random(columns.size), (rows, columns.ravel())), shape=(n, d))
    X.data /= np.sqrt(np.repeat(np.asarray(X.multiply(X).sum(axis=1)).ravel(), np.diff(X.indptr)))
    return Problem.check(X, y)


def nbytes(value):
    if isinstance(value, np.ndarray):
        return value.nbytes
    return sum(map(nbytes, value)) if isinstance(value, tuple | list) else 0


def facts(problem):
    counts = np.bincount(problem.y, minlength=problem.n_classes)
    return counts, int(np.count_nonzero(np.bincount(problem.X.indices))), problem.X.nnz


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_is_that_of_the_arrays_within_a_tenth(dtype):
    problem = text()
    plan = Plan(BOX, 1.0, 1e-2, 10, np.dtype(dtype), 0, problem.n_classes - 1.0)
    found = forecast(*facts(problem), 3, np.dtype(dtype).itemsize)
    with Crew(1) as crew:
        for rank, share in enumerate(found.shares):
            state = _Training(problem, plan, Hub(3).seat(rank), crew, None)
            held = sum(nbytes(value) for value in vars(state).values())
            X = problem.X
            held += X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + problem.weights.nbytes
            assert held == pytest.approx(share.memory_bytes, rel=0.1)
            assert share.classes == len(state.shard.own)
            assert share.examples == int((state.data.owner[problem.y] == rank).sum())


def test_an_epoch_costs_what_the_rates_say():
    problem = text()
    rates = Rates(batch=100.0, message=500.0, products=1e6, bandwidth=1e6, round_trip=0.01)
    found = forecast(*facts(problem), 2, 4, threads=2, rates=rates)
    assert found.rounds == 33
    assert found.bytes == 1_500_000
    assert found.seconds == pytest.approx(problem.X.nnz * 60 / 2e6 + 33 * 0.01 + 3.0)
    assert forecast(*facts(problem), 2, 8, rates=rates).seconds > found.seconds


def test_more_shards_share_the_weights_and_pay_by_the_round():
    problem = text()
    one, four = (forecast(*facts(problem), size, 4) for size in (1, 4))
    assert sum(share.classes for share in four.shares) == problem.n_classes
    assert sum(share.examples for share in four.shares) == problem.n_samples
    assert max(share.memory_bytes for share in four.shares) < one.shares[0].memory_bytes
    assert four.seconds < one.seconds
    with pytest.raises(ValueError, match="121 shards for 120 classes"):
        forecast(*facts(problem), 121, 4)


def test_shards_that_train_apart_tell_their_bounds_and_keep_every_dual_variable():
    problem = text()
    apart = forecast(*facts(problem), 3, 4, dense_duals=1, exchanges_scores=False)
    together = forecast(*facts(problem), 3, 4)
    assert (apart.rounds, apart.bytes) == (1, 3 * 48)
    assert apart.shares[0].memory_bytes - together.shares[0].memory_bytes < 3000 * 48 * 4
    wide = forecast(np.full(30_000, 1), 10, 30_000, 1, 4, dense_duals=1, exchanges_scores=False)
    assert wide.shares[0].memory_bytes > 4 * 30_000**2
