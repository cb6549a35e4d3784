"""The exponential loss of pairs: sweeps over weights, its bookkeeping, its optimum and its bound."""

import os
import subprocess
import sys

import cvxpy as cp
import numpy as np
import pytest

from solvers.boosting.pairs.pair_loss import PairLoss
from solvers.boosting.simd import LANES
from solvers.numerics.thread_pool import ThreadPool

ALONE = ThreadPool(1)


def random_loss(n: int = 60, k: int = 5, C: float = 30.0, seed: int = 0) -> PairLoss:
    rng = np.random.default_rng(seed)
    y = np.sort(np.append(np.arange(k), rng.integers(0, k, n - k))).astype(np.int32)
    return PairLoss(y, rng.uniform(0.2, 3.0, n), k, C)


def learners(n: int, m: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).choice(np.array([-1, 1], np.int8), (m, n))


def stepped(loss: PairLoss, responses: np.ndarray, classes: np.ndarray, weights: np.ndarray, *args, **kwargs) -> None:
    """A sweep that the scores follow."""
    before = weights.copy()
    loss.sweep(ALONE, responses, classes, weights, *args, **kwargs)
    loss.shift(ALONE, responses, classes, weights - before)


def by_definition(loss: PairLoss) -> np.ndarray:
    """mu (k, n) from the scores alone, zero for the true class."""
    rows = np.arange(len(loss.y))
    mu = loss.omega * np.exp(loss.F - loss.F[loss.y, rows])
    mu[loss.y, rows] = 0.0
    return mu


@pytest.mark.parametrize("C", [1.0, 1e4, 1e30])
def test_every_step_lowers_the_objective_and_keeps_the_factors_right(C):
    loss = random_loss(C=C)
    n, k = len(loss.y), len(loss.F)
    responses = learners(n, 40)
    # among them learners that separate whole classes, whose steps are as long as C allows
    for c in range(k):
        responses[c] = np.where(loss.y == c, 1, -1)
    classes, weights = (np.arange(40) % k).astype(np.int32), np.zeros(40)
    value = loss.rate * by_definition(loss).sum()
    for _ in range(3):
        for j in range(40):
            one = slice(j, j + 1)
            stepped(loss, responses[one], classes[one], weights[one])
            after = np.abs(weights).sum() + loss.rate * by_definition(loss).sum()
            assert after <= value * (1 + 1e-12)
            value = after
            mu = by_definition(loss)
            np.testing.assert_allclose((loss.mu.e * loss.mu.r)[mu > 0], mu[mu > 0], rtol=1e-10)
            np.testing.assert_allclose(loss.mu.E * loss.mu.r, mu.sum(axis=0), rtol=1e-10)
    F = np.array([(weights * (classes == c)) @ responses for c in range(k)])
    np.testing.assert_allclose(loss.F, F, atol=1e-12 * max(1.0, np.abs(F).max()))


@pytest.mark.parametrize("C", [60.0, 1e4, 1e12])
@pytest.mark.parametrize("share", [1.0, 1.6])
def test_several_variables_of_a_class_in_a_row_take_the_steps_that_each_takes_alone(C, share):
    together, alone = random_loss(C=C), random_loss(C=C)
    responses, classes = learners(60, 40), np.repeat(np.arange(5), 8).astype(np.int32)
    weights, others = np.zeros(40), np.zeros(40)
    for _ in range(3):
        stepped(together, responses, classes, weights, share)
        for j in range(40):
            stepped(alone, responses[j : j + 1], classes[j : j + 1], others[j : j + 1], share)
        np.testing.assert_allclose(weights, others, rtol=1e-9, atol=1e-9)
        mu = by_definition(together)
        np.testing.assert_allclose((together.mu.e * together.mu.r)[mu > 0], mu[mu > 0], rtol=1e-9)
        np.testing.assert_allclose(together.mu.E * together.mu.r, mu.sum(axis=0), rtol=1e-9)
    assert np.count_nonzero(weights) > 10


def test_steps_that_would_leave_the_range_of_floats_end_a_run():
    loss = random_loss(C=1e30)
    loss.mu.since_merge[1] = 229.9
    responses, classes, weights = learners(60, 12), np.ones(12, np.int32), np.zeros(12)
    stepped(loss, responses, classes, weights)
    assert 0 < loss.mu.since_merge[1] < 100
    mu = by_definition(loss)
    np.testing.assert_allclose((loss.mu.e * loss.mu.r)[mu > 0], mu[mu > 0], rtol=1e-9)
    assert np.count_nonzero(weights) == 12


@pytest.mark.parametrize("share", [0.3, 1.6, 1.95])
@pytest.mark.parametrize("C", [1.0, 30.0, 1e9])
def test_shorter_and_longer_steps_lower_the_objective_too(share, C):
    loss = random_loss(C=C)
    responses, classes, weights = learners(60, 30), (np.arange(30) % 5).astype(np.int32), np.zeros(30)
    exact, one = np.zeros(30), slice(0, 1)
    random_loss(C=C).sweep(ALONE, responses[one], classes[one], exact[one])
    value, beyond = loss.rate * by_definition(loss).sum(), 0
    for _ in range(4):
        for j in range(30):
            one = slice(j, j + 1)
            best, before = weights[one].copy(), weights[j]
            probe = random_loss(C=C)
            probe.F[:] = loss.F
            probe.refresh()
            probe.sweep(ALONE, responses[one], classes[one], best)
            stepped(loss, responses[one], classes[one], weights[one], share)
            beyond += abs(weights[j] - before) > 1.5 * abs(best[0] - before) > 0
            after = np.abs(weights).sum() + loss.rate * by_definition(loss).sum()
            assert after <= value * (1 + 1e-12)
            value = after
    if share < 1 and exact[0] != 0:
        assert abs(weights).max() > 0
    assert (beyond > 20) == (share > 1 and C > 1)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("share", [1.0, 1.6])
def test_on_fixed_weak_learners_the_steps_reach_the_optimum_of_a_convex_solver(signed, share):
    loss = random_loss(n=80, k=4, C=60.0)
    responses, classes = learners(80, 48), (np.arange(48) % 4).astype(np.int32)
    weights, rng = np.zeros(48), np.random.default_rng(0)
    for _ in range(3000):
        order = rng.permutation(48)
        order = order[np.argsort(classes[order], kind="stable")] if share > 1 else order
        part = weights[order]
        stepped(loss, responses[order], classes[order], part, share, signed=signed)
        weights[order] = part
    w = cp.Variable(48)
    F = cp.vstack([cp.multiply(w, classes == c) @ responses.astype(float) for c in range(4)])
    own = cp.sum(cp.multiply(F, np.eye(4)[loss.y].T), axis=0)
    q, i = np.nonzero(loss.y != np.arange(4)[:, None])
    losses = cp.sum(cp.multiply(loss.omega[i], cp.exp((F - cp.vstack([own] * 4))[q, i])))
    task = cp.Problem(cp.Minimize(cp.norm1(w) + loss.rate * losses), [] if signed else [w >= 0])
    value = task.solve(solver="CLARABEL", tol_gap_rel=1e-11, tol_gap_abs=1e-11, tol_feas=1e-11)
    ours = np.abs(weights).sum() + loss.rate * by_definition(loss).sum()
    assert ours == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(weights, w.value, atol=1e-4)
    assert 5 < np.count_nonzero(weights) < 48
    assert signed == bool((weights < 0).any())


@pytest.mark.parametrize("k", [2, 5, 21])
@pytest.mark.parametrize("fine", [False, True])
@pytest.mark.parametrize("size", [1, 3])
def test_measuring_gives_the_weights_of_every_class_and_the_sums_of_the_loss(k, fine, size):
    loss = random_loss(n=2500, k=k)
    loss.F[:] = 3 * np.random.default_rng(0).standard_normal(loss.F.shape)
    loss.F[:, ::7] = np.round(loss.F[:, ::7])
    loss.refresh()
    mu, rows = by_definition(loss), np.arange(2500)
    u = -mu
    u[loss.y, rows] = mu.sum(axis=0)
    with ThreadPool(size) as thread_pool:
        channels = loss.measure(thread_pool, fine=fine)
    for c in range(k):
        np.testing.assert_allclose(channels.weights(c), u[c], atol=0.51 / channels.scales[c])
        assert channels.totals.reshape(-1)[c] == channels.U[c // LANES, c % LANES :: LANES].sum(dtype=np.int64)
    np.testing.assert_allclose(channels.masses, np.abs(u).sum(axis=1))
    assert loss.mass == pytest.approx(mu.sum())
    positive = mu > 0
    logs = np.log(mu[positive] / np.broadcast_to(loss.omega, mu.shape)[positive])
    assert loss.entropy == pytest.approx((mu[positive] * logs).sum(), rel=1e-9)
    assert loss.n_wrong == np.count_nonzero(loss.F.argmax(axis=0) != loss.y)
    values = np.array([np.abs(u[c] @ learners(2500, 9).T) for c in range(k)])
    rounded = np.array([np.abs(channels.weights(c) @ learners(2500, 9).T) for c in range(k)])
    assert (np.abs(values - rounded) <= channels.slack[:, None]).all()


def test_gradients_are_what_the_loss_falls_by():
    loss = random_loss()
    loss.F[:] = np.random.default_rng(0).standard_normal(loss.F.shape)
    loss.refresh()
    responses, classes = learners(60, 10), (np.arange(10) % 5).astype(np.int32)
    reported = loss.gradients(responses, classes)
    for j in range(10):
        values = []
        for step in (1e-5, -1e-5):
            moved = random_loss()
            moved.F[:] = loss.F
            moved.F[classes[j]] += step * responses[j]
            values.append(by_definition(moved).sum())
        assert reported[j] == pytest.approx(-(values[0] - values[1]) / 2e-5, rel=1e-6)


def test_the_bound_is_that_of_the_dual_at_the_best_scaling():
    loss = random_loss()
    loss.F[:] = np.random.default_rng(0).standard_normal(loss.F.shape)
    loss.refresh()
    with ThreadPool(1) as thread_pool:
        loss.measure(thread_pool)
    mu, omega = by_definition(loss), np.broadcast_to(loss.omega, loss.F.shape)
    positive = mu > 0

    def dual(s: float) -> float:
        lam = s * loss.rate * mu[positive]
        return float((lam * (1 - np.log(lam / (loss.rate * omega[positive])))).sum())

    for largest in (1e-3, 5.0, 1e4):
        scalings = np.geomspace(1e-9, 1.0, 20_000) / (loss.rate * largest)
        best = max(dual(s) for s in scalings)
        assert loss.bound(largest) >= best - 1e-9 * abs(best)
        assert loss.bound(largest) == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("many", [1, 3])
def test_steps_and_scores_are_the_same_bits_with_helpers(many):
    n, k, ends = 20_000, 7, []
    responses, classes = learners(n, 30), np.append(np.arange(20) % k, np.repeat(np.arange(2), 5)).astype(np.int32)
    for size in (1, many):
        loss, weights = random_loss(n=n, k=k, C=1e4), np.zeros(30)
        with ThreadPool(size) as thread_pool:
            for _ in range(4):
                before = weights.copy()
                loss.sweep(thread_pool, responses, classes, weights, 1.6)
                loss.shift(thread_pool, responses, classes, weights - before)
            loss.measure(thread_pool)
        ends.append([weights, loss.F, loss.mu.e, loss.mu.r, loss.mu.E, loss.mass, loss.entropy, loss.n_wrong])
    for one, other in zip(*ends, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(
        (loss.mu.e * loss.mu.r)[by_definition(loss) > 0], by_definition(loss)[by_definition(loss) > 0]
    )


SCRIPT = """
import numpy as np
from solvers.boosting.pairs.pair_loss import PairLoss
from solvers.numerics.thread_pool import ThreadPool

rng, alone = np.random.default_rng(0), ThreadPool(1)
y = np.sort(np.append(np.arange(10), rng.integers(0, 10, 5990))).astype(np.int32)
loss, responses = PairLoss(y, np.ones(6000), 10, 1e8), rng.choice(np.array([-1, 1], np.int8), (40, 6000))
for classes in (np.arange(10), np.repeat(np.arange(10), 4)):
    weights = np.zeros(len(classes))
    loss.sweep(alone, responses, classes.astype(np.int32), weights)
    loss.shift(alone, responses, classes.astype(np.int32), weights)
    channels = loss.measure(alone)
    print(loss.mass.hex(), loss.entropy.hex(), channels.masses.tobytes().hex(), weights.tobytes().hex())
"""


@pytest.mark.slow
def test_code_just_compiled_and_code_from_the_cache_give_the_same_bits(tmp_path):
    command, environment = [sys.executable, "-c", SCRIPT], os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    ends = [subprocess.run(command, env=environment, check=True, capture_output=True).stdout for _ in range(2)]
    assert ends[0].count(b"\n") == 2
    assert ends[0] == ends[1]
