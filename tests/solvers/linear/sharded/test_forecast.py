"""Predictions of a training in shards, held against what it took."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import training
from gangs import run_shards
from held import most_held

from solvers.core.problem import Problem
from solvers.linear.sharded.batches.walk import BatchWalk
from solvers.linear.sharded.linear_shards import forecast
from solvers.linear.sharded.score_exchange import ScoreTraining
from solvers.linear.sharded.shard_weights import ShardWeights
from solvers.linear.sharded.task import DualLists, Plan
from solvers.numerics.thread_pool import ThreadPool
from solvers.sharding.exchange import Hub
from solvers.sharding.plan import LEAST, MOST, Rates
from solvers.sharding.shardable import shardable


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


def arrays_of(value):
    """The arrays that an object of the training holds, and the objects that it is composed of."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from arrays_of(part)
    elif isinstance(value, ScoreTraining | BatchWalk | DualLists | ShardWeights):
        for part in vars(value).values():
            yield from arrays_of(part)


def nbytes(arrays):
    return sum(array.nbytes for array in arrays.values())


def facts(problem):
    counts = np.bincount(problem.y, minlength=problem.n_classes)
    return counts, int(np.count_nonzero(np.bincount(problem.X.indices))), problem.X.nnz


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_is_that_of_the_arrays_within_a_tenth(dtype):
    problem = text()
    plan = Plan(1.0, 1e-2, 10, np.dtype(dtype), 0, problem.n_classes - 1.0)
    found = forecast(*facts(problem), 3, np.dtype(dtype).itemsize)
    with ThreadPool(1) as thread_pool:
        for rank, share in enumerate(found.shares):
            state = ScoreTraining(problem, plan, Hub(3).exchange(rank), thread_pool)
            held = nbytes({id(array): array for array in arrays_of(state)})
            X = problem.X
            held += X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + problem.weights.nbytes
            assert held == pytest.approx(share.memory_bytes, rel=0.1)
            assert share.classes == len(state.shard.own)
            assert share.examples == int((state.examples.owner[problem.y] == rank).sum())


def test_an_epoch_costs_what_the_rates_say():
    problem = text()
    rates = Rates(batch=100.0, once=500.0, message=0.0, certificates=0.5, products=1e6, bandwidth=1e6, round_trip=0.01)
    found = forecast(*facts(problem), 2, 4, threads=2, rates=rates)
    assert found.rounds == 33
    # of both shards two numbers of candidates an example, and of every other epoch two scores and what a search notes
    assert found.bytes == 500 * 3000 + 2 * (2 * 3000 + (8 * 3000 + 65536) // 2)
    assert found.seconds == pytest.approx(problem.X.nnz * 60 / 2e6 + 33 * 0.01 + 2e-6 * found.bytes)
    assert forecast(*facts(problem), 2, 8, rates=rates).seconds > found.seconds


def test_a_shard_adds_its_candidates_and_at_most_all_its_classes():
    def added(k, message):
        counts = np.full(k, 1000 // k)
        rates = Rates(once=0.0, message=message)
        two, one = (forecast(counts, 10, 1000, size, 4, rates=rates).bytes for size in (2, 1))
        nothing = Rates(once=0.0, message=0.0)
        return (two - one - forecast(counts, 10, 1000, 1, 4, rates=nothing).bytes) / (1000 // k * k)

    assert added(1000, 12.0) == pytest.approx(12.0, rel=1e-2)
    assert added(10, 12.0) == pytest.approx(6 * 2 * 5 / 7, rel=1e-3)
    assert added(10, 1e6) == pytest.approx(5 * 6.0, rel=1e-3)


@pytest.mark.slow
def test_bytes_of_many_shards_follow_from_those_of_few_within_a_fifth():
    problem, epochs = text(n=600, k=60), 2
    n, facts_of = problem.n_samples, facts(problem)
    solver = training.machine("weston_watkins", max_epochs=epochs, tol=1e-9, dtype="float32")
    sent, rounds = {}, {}
    for size in (1, 4, 16):
        hub = Hub(size)

        def work(rank, hub=hub):
            for _ in shardable(solver).sharded(problem, hub.exchange(rank)):
                pass

        with ThreadPoolExecutor(size) as pool:
            list(pool.map(work, range(size)))
        sent[size], rounds[size] = hub.bytes / epochs, hub.rounds / epochs
    blank = Rates(batch=n / (rounds[4] - 3), once=0.0, message=0.0, certificates=1 / epochs)
    rates = blank._replace(once=(sent[1] - forecast(*facts_of, 1, 4, rates=blank).bytes) / n)
    tried = [rates._replace(message=message) for message in np.geomspace(1.0, 1e4, 500)]
    rates = min(tried, key=lambda some: abs(forecast(*facts_of, 4, 4, rates=some).bytes - sent[4]))
    found = forecast(*facts_of, 16, 4, rates=rates)
    assert found.bytes == pytest.approx(sent[16], rel=0.2)
    assert found.rounds == pytest.approx(rounds[16], rel=0.2)


def dots(n=1500, d=30, k=10):
    """Dense rows whose classes overlap."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    return Problem.check(np.maximum(rng.normal(size=(k, d))[y] + rng.normal(size=(n, d)), 0.0), y)


@pytest.mark.parametrize("machine", ["weston_watkins", "crammer_singer"])
@pytest.mark.parametrize("made", [pytest.param(text, marks=pytest.mark.slow), dots])
def test_what_travels_lies_between_the_least_and_the_most(machine, made):
    problem, epochs, size = made(n=1500), 2, 2
    solver = training.machine(machine, max_epochs=epochs, tol=1e-9, dtype="float32")

    def work(exchange):
        sent, post = [], exchange.post
        exchange.post = lambda arrays: sent.append(sum(array.nbytes for array in arrays)) or post(arrays)
        for _ in shardable(solver).sharded(problem, exchange):
            pass
        return sent

    reported = run_shards(size, work)
    least, most = (shardable(solver).forecast(*facts(problem), size, rates) for rates in (LEAST, MOST))
    assert least.rounds <= len(reported[0]) / epochs <= most.rounds
    assert least.bytes <= sum(map(sum, reported)) / epochs <= most.bytes


def test_more_shards_share_the_weights_and_pay_by_the_round():
    problem = text()
    one, four = (forecast(*facts(problem), size, 4, rates=Rates(products=1e6)) for size in (1, 4))
    assert sum(share.classes for share in four.shares) == problem.n_classes
    assert sum(share.examples for share in four.shares) == problem.n_samples
    assert max(share.memory_bytes for share in four.shares) < one.shares[0].memory_bytes
    assert four.seconds < one.seconds
    one, four = (forecast(*facts(problem), size, 4, rates=Rates(products=1e12)) for size in (1, 4))
    assert four.seconds > one.seconds
    with pytest.raises(ValueError, match="121 shards for 120 classes"):
        forecast(*facts(problem), 121, 4)


def test_independent_shards_report_their_bounds_and_keep_every_dual_variable():
    problem = text()
    independent = forecast(*facts(problem), 3, 4, kind="bounds")
    together = forecast(*facts(problem), 3, 4)
    assert (independent.rounds, independent.bytes) == (1, 3 * 48)
    assert independent.shares[0].memory_bytes - together.shares[0].memory_bytes < 3000 * 48 * 4
    wide = forecast(np.full(30_000, 1), 10, 30_000, 1, 4, kind="bounds")
    assert wide.shares[0].memory_bytes > 4 * 30_000**2


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux can reset the peak of memory")
@pytest.mark.slow
@pytest.mark.parametrize("machine", ["weston_watkins", "one_vs_rest"])
def test_a_shards_process_holds_what_was_forecast_within_a_tenth(machine):
    held, forecast = most_held(machine, n=30_000, d=60_000, k=400)
    assert held == pytest.approx(forecast, rel=0.1)
