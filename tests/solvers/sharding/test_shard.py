"""Training in shards: the same bits for any number of shards and threads, true bounds, exact resumption."""

import threading
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from problems import optimum, small

import solvers.sharding.shard
from solvers.problem import Problem
from solvers.sharding.exchange import ExchangeError, Hub, run_shards
from solvers.sharding.shard import Plan, batch_size, deal, train
from solvers.sharding.subproblem import BOX, SIMPLEX

KINDS = {"weston_watkins": BOX, "crammer_singer": SIMPLEX}


def plan_for(name, problem, **changes):
    zero = problem.n_classes - 1.0 if name == "weston_watkins" else 1.0
    plan = Plan(KINDS[name], 1.0, 1e-3, 1000, np.dtype(np.float32), 0, zero, batch=16)
    return plan._replace(**changes)


def text(n=400, d=300, k=23, seed=0):
    """Rows with frequent and rare features, one of them empty, and classes of very different sizes."""
    rng = np.random.default_rng(seed)
    share = np.minimum(1.0, 3.0 / np.arange(1, d + 1))
    X = (rng.random((n, d)) < share) * rng.random((n, d))
    X[5] = 0
    y = np.minimum(rng.zipf(1.5, n), k) - 1
    y[:k] = np.arange(k)
    return Problem.check(sp.csr_matrix(X), y)


def followed(problem, plan, threads, state, exchange):
    """The steps of one shard, with copies of their states."""
    return [
        (step, {key: np.array(value) for key, value in step.state.items()})
        for step in train(problem, plan, exchange, threads, state)
    ]


def in_shards(problem, plan, size, threads=1, states=None):
    def work(exchange):
        return followed(problem, plan, threads, states[exchange.rank] if states else None, exchange)

    return run_shards(size, work)


def assembled(problem, shards, at=-1):
    W = np.zeros((shards[0][at][1]["W"].shape[0], problem.n_classes), np.float32)
    for steps in shards:
        state = steps[at][1]
        W[:, state["own"]] = state["W"][:, : len(state["own"])]
    return W


@pytest.mark.parametrize("refinements", [0, 2])
@pytest.mark.parametrize("name", KINDS)
def test_the_bits_depend_neither_on_shards_nor_on_threads(name, refinements):
    problem = text()
    plan = plan_for(name, problem, width=4, refinements=refinements)
    expected = in_shards(problem, plan, 1)
    assert expected[0][-1][0].converged
    W = assembled(problem, expected)
    for size, threads in ((1, 2), (1, 3), (2, 1), (3, 2), (4, 1)):
        shards = in_shards(problem, plan, size, threads)
        np.testing.assert_array_equal(assembled(problem, shards), W)
        for steps in shards:
            assert len(steps) == len(expected[0])
            for (step, state), (other, reference) in zip(steps, expected[0], strict=True):
                assert repr(step.primal) == repr(other.primal)
                assert repr(step.dual) == repr(other.dual)
                for key in set(reference) - {"W", "own"}:
                    np.testing.assert_array_equal(state[key], reference[key], err_msg=key)


@pytest.mark.parametrize("C", [0.1, 3.0])
@pytest.mark.parametrize("name", KINDS)
def test_the_bounds_enclose_the_optimum_and_meet_there(name, C):
    problem = small()
    value, _ = optimum(name, problem, C)
    plan = plan_for(name, problem, C=C, tol=1e-7, max_epochs=100_000, dtype=np.dtype(np.float64))
    for steps in in_shards(problem, plan, 2):
        step = steps[-1][0]
        assert step.converged
        assert step.dual <= value * (1 + 1e-8)
        assert step.primal == pytest.approx(value, rel=1e-6)


def dual_of(state):
    lists = zip(state["pool_start"], state["pool_length"], strict=True)
    total = -sum(state["pool_values"][start + 1 : start + length].sum() for start, length in lists)
    return total - 0.5 * (state["W"] ** 2).sum()


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("name", KINDS)
def test_the_dual_rises_at_every_batch_however_large(name, size, monkeypatch):
    monkeypatch.setattr(solvers.sharding.shard, "SLICE_PRODUCTS", 30_000)
    problem = text(n=150)
    plan = plan_for(name, problem, batch=size, max_epochs=3, dtype=np.dtype(np.float64))
    states = [state for _, state in followed(problem, plan, 1, None, Hub(1).seat(0))]
    duals = np.array([dual_of(state) for state in states])
    assert (np.diff(duals) >= -1e-12 * duals[1:]).all()
    assert duals[-1] > 1.5 * duals[0]
    np.testing.assert_allclose([state["gained"][0] for state in states], duals, rtol=1e-10)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("name", KINDS)
def test_a_resumed_run_repeats_the_uninterrupted_one_bit_for_bit(name, size, monkeypatch):
    monkeypatch.setattr(solvers.sharding.shard, "SLICE_PRODUCTS", 20_000)
    problem = text()
    plan = plan_for(name, problem)
    whole = in_shards(problem, plan, size)
    assert len(whole[0]) > 4
    for stop in (0, len(whole[0]) // 2, len(whole[0]) - 2):
        resumed = in_shards(problem, plan, size, states=[steps[stop][1] for steps in whole])
        for steps, reference in zip(resumed, whole, strict=True):
            assert len(steps) == len(reference) - stop - 1
            for key, array in reference[-1][1].items():
                np.testing.assert_array_equal(steps[-1][1][key], array, err_msg=key)


def test_a_lost_shard_ends_training_within_the_timeout_and_leaves_no_thread():
    before = set(threading.enumerate())
    problem = text()
    plan = plan_for("weston_watkins", problem, tol=1e-7)

    def work(exchange):
        for step in train(problem, plan, exchange, threads=2):
            if exchange.rank == 1 and step.epoch == 2:
                return

    with pytest.raises(ExchangeError, match=r"sent nothing for 0\.3 s"):
        run_shards(2, work, timeout=0.3)
    assert set(threading.enumerate()) == before


def test_one_message_a_batch_and_two_a_certificate():
    problem = text()
    plan = plan_for("weston_watkins", problem, max_epochs=1, batch=64)
    hub = Hub(2)
    threads = [threading.Thread(target=partial(followed, problem, plan, 1, None, hub.seat(rank))) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert hub.rounds == -(-399 // 64) + 2


def test_classes_are_dealt_evenly_in_number_and_in_examples():
    y = np.repeat(np.arange(40), np.arange(40, 0, -1)).astype(np.int32)
    owner = deal(y, 40, 4)
    assert np.bincount(owner).tolist() == [10] * 4
    examples = np.bincount(owner[y])
    assert examples.max() <= 1.1 * examples.min()
    with pytest.raises(ValueError, match="41 shards for 40 classes"):
        deal(y, 40, 41)


def test_batches_are_smaller_where_rows_overlap_more():
    dense = np.tile(np.arange(100, dtype=np.int32), 50)
    sparse = np.arange(5000, dtype=np.int32)
    assert batch_size(dense, 50) == 64
    assert batch_size(sparse, 5000) == 1024
