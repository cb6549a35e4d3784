"""Steps on the weights of all classes at once: their model, how mu follows, and the optimum that they lead to."""

import cvxpy as cp
import numpy as np
import pytest
from test_pair_loss import by_definition, learners, random_loss

from solvers.boosting.pairs import pair_sample, quadratic_step
from solvers.boosting.pairs.master_problem import SWEEPS, MasterProblem
from solvers.boosting.pairs.pair_loss import PairLoss
from solvers.boosting.pairs.quadratic_step import QuadraticStep
from solvers.boosting.pairs.variables import Variables
from solvers.numerics.thread_pool import ThreadPool

ALONE = ThreadPool(1)


def scored(n: int = 60, k: int = 5, C: float = 30.0) -> PairLoss:
    loss = random_loss(n, k, C)
    loss.F[:] = 2.0 * np.random.default_rng(3).standard_normal(loss.F.shape)
    loss.refresh()
    return loss


def master(loss: PairLoss, responses: np.ndarray, classes: np.ndarray, *, signed: bool = True) -> MasterProblem:
    variables = Variables()
    variables.admit(np.arange(len(classes)), classes.astype(np.int64))
    return MasterProblem(loss, variables, lambda part: responses[part], signed=signed)


def positions(counts: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Where weights of each class are, and where those of each class begin."""
    offsets = np.append(0, np.cumsum([-(-count // 4) * 4 for count in counts]))
    return np.concatenate([offset + np.arange(m) for offset, m in zip(offsets, counts, strict=False)]), offsets


@pytest.mark.parametrize("n", [60, 1500])
@pytest.mark.parametrize("size", [1, 3])
def test_of_all_pairs_the_second_derivatives_are_those_of_the_loss(n, size, monkeypatch):
    monkeypatch.setattr(quadratic_step, "LEAST_SAMPLE", 5 * n)
    loss, responses, counts = scored(n), learners(n, 23), [3, 8, 0, 5, 7]
    classes = np.repeat(np.arange(5), counts).astype(np.int32)
    at, offsets = positions(counts)
    step = QuadraticStep(loss, lambda part: responses[part], signed=True)
    with ThreadPool(size) as thread_pool:
        H = step._model(thread_pool, np.arange(23), classes, at, offsets, float((loss.mu.E * loss.mu.r).sum()), 0.4)
    assert H is not None
    mu, expected = by_definition(loss), np.zeros((23, 23))
    for q in range(5):
        # how the score of q, less that of the row's own class, grows with each weight
        z = np.where(classes[:, None] == q, responses, 0) - np.where(classes[:, None] == loss.y, responses, 0)
        expected += (z * mu[q]) @ z.T
    scale = loss.rate * np.diag(expected).max()
    np.testing.assert_allclose(H[np.ix_(at, at)], loss.rate * expected, atol=2e-6 * scale)
    rest = np.setdiff1d(np.arange(len(H)), at)
    assert not H[rest].any()
    assert not H[:, rest].any()


def test_a_sample_has_all_pairs_above_the_level_and_stands_for_the_others():
    loss = scored(4000)
    mu = by_definition(loss)
    level = float(mu.sum()) / 5000
    rows, mass, ends = np.empty(20_000, np.int32), np.empty(20_000), np.empty(26, np.int64)
    many = pair_sample.draw(loss.mu.starts, loss.mu.e, loss.mu.r, level, 0.3, rows, mass, ends)
    assert 1000 < many == ends[-1] < 5000
    drawn = np.zeros_like(mu)
    for q in range(5):
        for c in range(5):
            part = slice(ends[5 * q + c], ends[5 * q + c + 1])
            assert (loss.y[rows[part]] == c).all()
            drawn[q, rows[part]] += mass[part]
    assert not drawn[loss.y, np.arange(4000)].any()
    np.testing.assert_allclose(drawn[mu > level], mu[mu > level], rtol=1e-9)
    np.testing.assert_allclose(drawn.sum(axis=1), mu.sum(axis=1), rtol=0.1)
    # a table that is too small ends the sample, no more
    assert pair_sample.draw(loss.mu.starts, loss.mu.e, loss.mu.r, level, 0.3, rows[:101], mass[:101], ends) == 100


@pytest.mark.parametrize("signed", [False, True])
def test_the_model_is_lowered_to_where_its_conditions_hold(signed):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((90, 30))
    H, gradient = (Z.T @ Z / 20).astype(np.float32), rng.normal(0, 3, 30)
    weights = np.where(rng.random(30) < 0.5, 0.0, rng.standard_normal(30) if signed else rng.random(30))
    step = np.empty(30)
    total = quadratic_step.minimise(H, gradient, weights, rng.permutation(30), signed, 5000, 1e-12, step)
    ends, slopes = weights + step, gradient + H.astype(np.float64) @ step
    assert total == pytest.approx(
        np.abs(weights).sum() - np.abs(ends).sum() - gradient @ step - step @ H.astype(np.float64) @ step / 2, rel=1e-4
    )
    on = ends != 0
    np.testing.assert_allclose(slopes[on], -np.sign(ends[on]), atol=1e-3)
    assert (np.abs(slopes[~on]) if signed else -slopes[~on]).max() <= 1.0 + 1e-3
    assert (~on).any()
    assert signed == bool((ends < 0).any())


@pytest.mark.parametrize("size", [1, 3])
def test_mu_follows_the_scores_to_the_last_digits_and_back(size):
    loss, before = scored(5000, 7), scored(5000, 7)
    directions = np.random.default_rng(1).normal(0, 20, loss.F.shape)
    with ThreadPool(size) as thread_pool:
        loss.follow(thread_pool, directions, 1.0)
        mass = loss.follow(thread_pool, directions, -0.5)
    loss.F += 0.5 * directions
    mu = by_definition(loss)
    np.testing.assert_allclose((loss.mu.e * loss.mu.r)[mu > 0], mu[mu > 0], rtol=1e-12)
    np.testing.assert_allclose(loss.mu.E * loss.mu.r, mu.sum(axis=0), rtol=1e-12)
    assert mass == pytest.approx(mu.sum(), rel=1e-12)
    loss.follow(ALONE, directions, -0.5)
    mu = by_definition(before)
    np.testing.assert_allclose((loss.mu.e * loss.mu.r)[mu > 0], mu[mu > 0], rtol=1e-12)


@pytest.mark.parametrize("C", [30.0, 1e3, 1e12])
@pytest.mark.parametrize("sample", [10, 4000])
def test_every_iteration_lowers_the_objective_and_keeps_the_factors_right(C, sample, monkeypatch):
    monkeypatch.setattr(quadratic_step, "LEAST_SAMPLE", sample)
    monkeypatch.setattr(quadratic_step, "SAMPLE", 1 if sample == 10 else 32)
    responses, classes = learners(300, 40), (np.arange(40) % 5).astype(np.int32)
    problem = master(random_loss(300, 5, C), responses, classes)
    problem.sweep(ALONE, np.arange(40))
    values = [objective_of_factors(problem)]
    for iteration in range(12):
        gradients = problem.gradients()
        problem.choose_working_set(problem.violations(gradients), 0.0)
        problem.iterate(ALONE, gradients, [iteration])
        values.append(objective_of_factors(problem))
    assert (np.diff(values) <= 1e-12 * np.array(values[:-1])).all()
    assert values[-1] < values[0]
    variables, loss = problem.variables, problem.loss
    scored = np.array([(variables.scored * (classes == c)) @ responses for c in range(5)])
    np.testing.assert_allclose(loss.F, scored, atol=1e-11 * max(1.0, np.abs(scored).max()))
    loss.shift(ALONE, responses, classes, variables.weights - variables.scored)
    mu = by_definition(loss)
    np.testing.assert_allclose((loss.mu.e * loss.mu.r)[mu > 0], mu[mu > 0], rtol=1e-9)


def objective_of_factors(problem: MasterProblem) -> float:
    loss = problem.loss
    return float(np.abs(problem.variables.weights).sum() + loss.rate * (loss.mu.E * loss.mu.r).sum())


@pytest.mark.parametrize("signed", [False, True])
def test_on_fixed_weak_learners_the_iterations_reach_the_optimum_of_a_convex_solver(signed):
    loss = random_loss(n=100, k=4, C=60.0)
    responses, classes = learners(100, 48), (np.arange(48) % 4).astype(np.int32)
    problem, iterations = master(loss, responses, classes, signed=signed), 0
    problem.sweep(ALONE, np.arange(48))
    for iterations in range(40):
        gradients = problem.gradients()
        if not problem.choose_working_set(problem.violations(gradients), 1e-6):
            break
        problem.iterate(ALONE, gradients, [iterations])
    assert iterations < 25
    w = cp.Variable(48)
    F = cp.vstack([cp.multiply(w, classes == c) @ responses.astype(float) for c in range(4)])
    own = cp.sum(cp.multiply(F, np.eye(4)[loss.y].T), axis=0)
    q, i = np.nonzero(loss.y != np.arange(4)[:, None])
    losses = cp.sum(cp.multiply(loss.omega[i], cp.exp((F - cp.vstack([own] * 4))[q, i])))
    task = cp.Problem(cp.Minimize(cp.norm1(w) + loss.rate * losses), [] if signed else [w >= 0])
    value = task.solve(solver="CLARABEL", tol_gap_rel=1e-11, tol_gap_abs=1e-11, tol_feas=1e-11)
    assert objective_of_factors(problem) == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(problem.variables.weights, w.value, atol=1e-4)
    assert signed == bool((problem.variables.weights < 0).any())


def test_threads_change_no_bit_of_an_iteration():
    responses, classes, ends = learners(20_000, 60), np.sort(np.arange(60) % 7).astype(np.int32), []
    for size in (1, 2, 3):
        problem = master(random_loss(20_000, 7, 1e4), responses, classes)
        with ThreadPool(size) as thread_pool:
            problem.sweep(thread_pool, np.arange(60))
            for iteration in range(3):
                gradients = problem.gradients()
                assert problem.choose_working_set(problem.violations(gradients), 0.0)
                problem.iterate(thread_pool, gradients, [iteration])
                assert problem.sweeps_left == 0
        loss = problem.loss
        ends.append([problem.variables.weights, loss.F, loss.mu.e, loss.mu.r, loss.mu.E])
    for other in ends[1:]:
        for one, another in zip(ends[0], other, strict=True):
            np.testing.assert_array_equal(one, another)


def test_where_a_model_would_be_too_dear_sweeps_take_its_place(monkeypatch):
    responses, classes = learners(60, 20), (np.arange(20) % 5).astype(np.int32)
    problem = master(random_loss(), responses, classes)
    problem.sweep(ALONE, np.arange(20))
    monkeypatch.setattr(quadratic_step, "MOST", 10)
    gradients = problem.gradients()
    assert problem.choose_working_set(problem.violations(gradients), 1e-3)
    for left in range(SWEEPS - 1, -1, -1):
        problem.iterate(ALONE, gradients if left == SWEEPS - 1 else None, [left])
        assert problem.sweeps_left == left
    monkeypatch.setattr(quadratic_step, "MOST", 2048)
    monkeypatch.setattr(quadratic_step, "ROOM", 4)
    assert not QuadraticStep(problem.loss, lambda part: responses[part], signed=True).fits(20)
    monkeypatch.setattr(quadratic_step, "ROOM", 1 << 23)
    assert QuadraticStep(problem.loss, lambda part: responses[part], signed=True).fits(30)
    assert not QuadraticStep(problem.loss, lambda part: responses[part], signed=True).fits(31)
