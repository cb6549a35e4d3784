"""Training in shards: one optimum for any number of shards, one result for any number of threads, exact resumption."""

import threading
from dataclasses import replace
from functools import partial
from hashlib import sha256

import numpy as np
import pytest
import scipy.sparse as sp
from gangs import run_shards
from problems import optimum, small

import solvers.core.certified_ascent
import solvers.linear.sharded.batches.walk
import solvers.linear.sharded.training
from solvers.core.certified_ascent import CERTIFY_SHARE
from solvers.core.problem import Problem
from solvers.linear.sharded.batches.batch import empty_batch, prepare, with_examples
from solvers.linear.sharded.batches.updates import solve
from solvers.linear.sharded.score_exchange import ScoreTraining
from solvers.linear.sharded.task import Plan, Schedule, Shard, blank_statistics
from solvers.linear.sharded.training import train
from solvers.numerics import coefficients
from solvers.numerics.rows import arrange, weights
from solvers.sharding.exchange import ExchangeError, Hub

MACHINES = ("weston_watkins", "crammer_singer")


def plan_for(name, problem, **changes):
    largest_loss = name == "crammer_singer"
    zero = 1.0 if largest_loss else problem.n_classes - 1.0
    plan = Plan(1.0, 1e-3, 1000, np.dtype(np.float32), 0, zero, largest_loss, batch=16)
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


def features_of(problem):
    """The columns of X in the order in which training has them."""
    return arrange(problem.X, np.dtype(np.float64))[1]


def followed(problem, plan, threads, state, exchange, keep=dict):
    """The steps of one shard with copies of their states, of all but the last what ``keep`` makes of them."""
    found = []
    for step in train(partial(ScoreTraining, problem, plan, exchange), threads, state):
        if found:
            found[-1] = (found[-1][0], keep(found[-1][1]))
        found.append((replace(step, state={}), {key: np.array(value) for key, value in step.state.items()}))
    return found


def at_stops(*stops):
    """Keeps the states of these steps alone; it is for one shard."""
    count = iter(range(1 << 30))
    return lambda state: dict(state) if next(count) in stops else {}


def nothing(state):
    return {}


def digests(state):
    """Equal where the arrays are, and far smaller."""
    return {key: np.frombuffer(sha256(array + 0).digest(), np.uint8) for key, array in state.items()}


def in_shards(problem, plan, size, threads=1, states=None, keep=dict, stops=None):
    def work(exchange):
        state = states[exchange.rank] if states else None
        return followed(problem, plan, threads, state, exchange, at_stops(*stops) if stops else keep)

    return run_shards(size, work)


def assembled(problem, shards, at=-1):
    W = np.zeros((shards[0][at][1]["W"].shape[0], problem.n_classes), np.float32)
    for steps in shards:
        state = steps[at][1]
        W[:, state["own"]] = state["W"][:, : len(state["own"])]
    return W


@pytest.mark.parametrize("inner_passes", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("name", MACHINES)
def test_the_bits_do_not_depend_on_threads(name, inner_passes):
    problem = text(n=200)
    plan = plan_for(name, problem, width=4, inner_passes=inner_passes)
    for size in (1, 2):
        expected = in_shards(problem, plan, size, keep=digests)
        assert expected[0][-1][0].converged
        shards = in_shards(problem, plan, size, 2, keep=digests)
        for steps, references in zip(shards, expected, strict=True):
            assert len(steps) == len(references)
            for (step, state), (other, reference) in zip(steps, references, strict=True):
                assert repr(step.primal) == repr(other.primal)
                assert repr(step.dual) == repr(other.dual)
                for key in reference:
                    np.testing.assert_array_equal(state[key], reference[key], err_msg=key)


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_all_numbers_of_shards_reach_one_objective_and_agree_on_all_but_their_weights(name):
    problem = text(n=200)
    plan = plan_for(name, problem)
    first = in_shards(problem, plan, 1, keep=nothing)[0][-1][0]
    for size in (2, 5):
        shards = in_shards(problem, plan, size, keep=digests)
        assert shards[0][-1][0].primal == pytest.approx(first.primal, rel=2e-3)
        for steps in shards[1:]:
            for (step, state), (other, reference) in zip(steps, shards[0], strict=True):
                assert repr((step.primal, step.dual)) == repr((other.primal, other.dual))
                for key in reference.keys() - {"W", "own"}:
                    np.testing.assert_array_equal(state[key], reference[key], err_msg=key)


@pytest.mark.slow
@pytest.mark.parametrize("C", [0.1, 3.0])
@pytest.mark.parametrize("name", MACHINES)
def test_the_bounds_enclose_the_optimum_and_meet_there(name, C):
    problem = small()
    value, _ = optimum(name, problem, C)
    plan = plan_for(name, problem, C=C, tol=1e-5, max_epochs=100_000, dtype=np.dtype(np.float64))
    for steps in in_shards(problem, plan, 2, keep=nothing):
        step = steps[-1][0]
        assert step.converged
        assert step.dual <= value * (1 + 1e-8)
        assert step.primal == pytest.approx(value, rel=2e-5)


def dual_of(state):
    lists = zip(state["pool_start"], state["pool_length"], strict=True)
    total = -sum(state["pool_values"][start + 1 : start + length].sum() for start, length in lists)
    return total - 0.5 * (state["W"] ** 2).sum()


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("name", MACHINES)
def test_the_dual_rises_at_every_batch_however_large(name, size, monkeypatch):
    monkeypatch.setattr(solvers.linear.sharded.training, "SLICE_PRODUCTS", 30_000)
    problem = text(n=150)
    plan = plan_for(name, problem, batch=size, max_epochs=3, dtype=np.dtype(np.float64))
    states = [state for _, state in followed(problem, plan, 1, None, Hub(1).exchange(0))]
    duals = np.array([dual_of(state) for state in states])
    assert (np.diff(duals) >= -1e-12 * duals[1:]).all()
    assert duals[-1] > 1.5 * duals[0]


@pytest.mark.parametrize("size", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", MACHINES)
def test_a_resumed_run_repeats_the_uninterrupted_one_bit_for_bit(name, size, monkeypatch):
    monkeypatch.setattr(solvers.linear.sharded.training, "SLICE_PRODUCTS", 20_000)
    problem = text(n=200)
    plan = plan_for(name, problem)
    n_steps = len(in_shards(problem, plan, size, keep=nothing)[0])
    assert n_steps > 4
    stops = (0, n_steps // 2, n_steps - 2)
    whole = in_shards(problem, plan, size, stops=stops)
    for stop in stops:
        resumed = in_shards(problem, plan, size, states=[steps[stop][1] for steps in whole], keep=nothing)
        for steps, reference in zip(resumed, whole, strict=True):
            assert len(steps) == len(reference) - stop - 1
            for key, array in reference[-1][1].items():
                np.testing.assert_array_equal(steps[-1][1][key], array, err_msg=key)


def test_a_lost_shard_ends_training_within_the_timeout_and_leaves_no_thread():
    before = set(threading.enumerate())
    problem = text()
    plan = plan_for("weston_watkins", problem, tol=1e-7)

    def work(exchange):
        for step in train(partial(ScoreTraining, problem, plan, exchange), threads=2):
            if exchange.rank == 1 and step.epoch == 2:
                return

    with pytest.raises(ExchangeError, match=r"sent nothing for 0\.3 s"):
        run_shards(2, work, timeout=0.3)
    assert set(threading.enumerate()) == before


def test_one_message_a_batch_and_a_pass_and_two_an_epoch_with_its_certificate(monkeypatch):
    monkeypatch.setattr(solvers.linear.sharded.batches.walk, "LARGEST_BATCH", 64)
    # rows that have nothing in common: no step disturbs another, and no batch is scored twice
    problem = Problem.check(sp.eye(400, format="csr"), np.arange(400) % 23)
    plan = plan_for("weston_watkins", problem, max_epochs=1, batch=64, inner_passes=False)
    hub = Hub(2)
    threads = [
        threading.Thread(target=partial(followed, problem, plan, 1, None, hub.exchange(rank))) for rank in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert hub.rounds == -(-400 // 64) + 1 + 2


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_a_batch_in_two_messages_takes_the_steps_of_one_in_one(name, monkeypatch):
    problem = text()
    plan = plan_for(name, problem, max_epochs=2, batch=32, dtype=np.dtype(np.float64))
    found = []
    for products in (1 << 40, 1):
        monkeypatch.setattr(solvers.linear.sharded.batches.walk, "SPLIT_PRODUCTS", products)
        hub, shards = Hub(2), [[], []]

        def work(rank, hub=hub, shards=shards):
            shards[rank] += followed(problem, plan, 1, None, hub.exchange(rank))

        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found.append((hub.rounds, shards))
    (rounds, whole), (more, split) = found
    assert more > 1.3 * rounds
    for steps, references in zip(split, whole, strict=True):
        (step, state), (reference, expected) = steps[-1], references[-1]
        assert step.primal == pytest.approx(reference.primal, rel=1e-9)
        np.testing.assert_allclose(state["W"], expected["W"], atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("largest_loss", [False, True])
def test_candidates_are_few_and_have_every_class_that_a_step_of_all_moves(largest_loss, size):
    rng = np.random.default_rng(size)
    problem = text(k=150)
    rows, _ = arrange(problem.X, np.dtype(np.float64))
    n, k, d = problem.n_samples, problem.n_classes, int(rows.indices.max()) + 1
    pool, bounds = coefficients.empty(n, 4 * n), np.full(n, 0.7)
    for i in np.flatnonzero(rng.random(n) < 0.7):
        c = (problem.y[i] + 1 + rng.choice(k - 1, 2, replace=False)) % k
        held = rng.random(2) * 0.35
        coefficients.put(pool, i, np.r_[problem.y[i], c].astype(np.int32), np.r_[held.sum(), -held], 3)
    W = rng.normal(size=(d, k)) * 0.2
    scores = problem.X[:, features_of(problem)] @ W
    examples = np.flatnonzero(rows.squares > 0).astype(np.int32)
    seen = scores[np.arange(n), problem.y]
    offered = np.zeros((n, k), bool)
    for rank in range(size):
        own = np.arange(rank, k, size, dtype=np.int32)
        local = np.full(k, -1, np.int32)
        local[own] = np.arange(len(own), dtype=np.int32)
        shard = Shard(own, local, weights(d, len(own), np.dtype(np.float64)))
        shard.W[:, : len(own)] = W[:, own]
        batch = with_examples(empty_batch(len(examples), k, np.dtype(np.float64)), pool, examples)
        prepare(largest_loss, rows, problem.y, bounds, shard, None, pool, seen, None, batch, k, 0, len(examples))
        for e, i in enumerate(examples):
            offered[i, batch.classes[e, : batch.counts[e]]] = True
    needed = np.zeros((n, k), bool)
    for i in examples:
        old = np.zeros(k)
        entries = slice(pool.start[i] + 1, pool.start[i] + pool.length[i])
        old[pool.classes[entries]] = -pool.values[entries]
        others = np.flatnonzero(np.arange(k) != problem.y[i])
        b = ((1.0 - seen[i] + scores[i]) / rows.squares[i] + old + old.sum())[others]
        new = np.zeros(k - 1)
        solve(b, old[others], new, k - 1, 0.7, old.sum(), rows.squares[i], largest_loss, blank_statistics(), None)
        needed[i, others] = (new > 1e-9) & (old[others] == 0.0)
    assert needed.sum() > 100
    assert not (needed & ~offered).any()
    assert offered.sum() <= (1.0 if size == 1 else 4.0) * needed.sum() + 0.01 * offered.size


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_the_gap_that_visits_measure_lies_between_the_certificates_before_and_after_and_spares_most_of_them(
    name, monkeypatch
):
    problem = text(n=2000)
    plan = plan_for(name, problem, batch=64)
    spared = in_shards(problem, plan, 2, keep=nothing)[0]
    assert spared[-1][0].converged
    certificates = [step for step, _ in spared if np.isfinite(step.primal)]
    assert len(certificates) <= 3 + CERTIFY_SHARE * spared[-1][0].epoch
    monkeypatch.setattr(solvers.core.certified_ascent, "CERTIFY_SHARE", 1.0)
    gaps, estimates = [], []
    for step, state in in_shards(problem, plan, 2, keep=lambda state: {"schedule": state["schedule"]})[0]:
        if np.isfinite(step.primal):
            gaps.append(step.gap)
            estimates.append(Schedule.from_array(state["schedule"]).gap)
    assert len(gaps) > 3
    for before, after, estimate in zip(gaps, gaps[1:], estimates[1:], strict=False):
        assert 0.5 * after < estimate < 2.0 * before
    assert spared[-1][0].epoch <= 1.1 * len(gaps) + 2
