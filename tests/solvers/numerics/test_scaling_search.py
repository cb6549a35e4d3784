"""The multiple of W that certificates of machines with relative margins are of, and that their models are."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import training
from gangs import run_shards
from problems import small
from scipy.optimize import minimize_scalar

from solvers.core.problem import Problem
from solvers.numerics import scaling_search
from solvers.sharding.shardable import shardable

NAMES = ["weston_watkins", "crammer_singer"]


def machine(name, **params):
    return training.machine(name, **({"C": 30.0, "tol": 0.05, "dtype": "float64"} | params))


def sparse(n=90, d=120, k=7):
    rng = np.random.default_rng(3)
    X = (rng.random((n, d)) < 0.1) * rng.random((n, d))
    return Problem.check(sp.csr_matrix(X), np.concatenate([np.arange(k), rng.integers(0, k, n - k)]))


PROBLEMS = {"dense": small(n=80, d=6), "sparse": sparse()}


def objective(solver, problem, W):
    F, i = np.asarray(problem.X @ W.T), np.arange(problem.n_samples)
    violations = np.maximum(0.0, 1.0 - F[i, problem.y][:, None] + F)
    violations[i, problem.y] = 0.0
    losses = violations.max(axis=1) if solver.largest_loss else violations.sum(axis=1)
    return 0.5 * (W**2).sum() + solver.params.C * losses.sum()


def check(solver, problem, step, W, rel=1e-9):
    """The step's objective is the model's, and no other multiple from W on has a lower one."""
    scale = float(step.state["scale"][0])
    assert step.primal == pytest.approx(objective(solver, problem, W), rel=rel)
    best = minimize_scalar(lambda s: objective(solver, problem, s / scale * W), bounds=(1, 2), method="bounded")
    assert step.dual <= step.primal <= best.fun * (1 + 1e-4)
    return scale


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("name", NAMES)
def test_the_certificate_is_of_the_best_multiple_from_w_on_and_so_is_the_model(name, kind):
    problem, solver, scales = PROBLEMS[kind], machine(name), []
    for step in solver.steps(problem):
        if not np.isnan(step.gap):
            scales.append(check(solver, problem, step, solver.model(problem, step.state).coef))
    assert step.converged
    assert 1.0 < max(scales) <= scaling_search.LARGEST


@pytest.mark.parametrize("name", NAMES)
def test_shards_certify_the_best_multiple_too(name):
    problem, solver = PROBLEMS["sparse"], machine(name, dtype="float32")

    def work(exchange):
        parts = []
        for step in shardable(solver).sharded(problem, exchange):
            if not np.isnan(step.gap):
                part = shardable(solver).part(problem, step.state)
                state = {"scale": np.array(step.state["scale"])}
                parts.append((step.primal, step.dual, state, part.features, part.own, np.array(part.W)))
        return parts

    scales = []
    for certified in zip(*run_shards(2, work), strict=True):
        W = np.zeros((problem.n_classes, problem.n_features))
        for _, _, _, features, own, part in certified:
            W[np.ix_(own, features)] = part.T
        primal, dual, state, *_ = certified[0]
        step = SimpleNamespace(primal=primal, dual=dual, state=state)
        scales.append(check(solver, problem, step, W, rel=1e-6))
    assert max(scales) > 1.0


@pytest.mark.parametrize("name", NAMES)
def test_a_resumed_run_takes_up_the_multiple(name):
    problem, solver = PROBLEMS["sparse"], machine(name, tol=1e-4)
    steps = [(step.primal, {key: np.array(a) for key, a in step.state.items()}) for step in solver.steps(problem)]
    middle = next(t for t, (_, state) in enumerate(steps) if state["scale"][0] != 1)
    assert middle + 1 < len(steps)
    *_, last = solver.steps(problem, steps[middle][1])
    assert last.primal == steps[-1][0]
    np.testing.assert_array_equal(last.state["scale"], steps[-1][1]["scale"])


def test_the_gap_closes_in_fewer_epochs(monkeypatch):
    epochs = []
    for best_point in (scaling_search.best_point, lambda half, loss, *_: (half + loss, 1.0)):
        monkeypatch.setattr(scaling_search, "best_point", best_point)
        ends = [list(machine("weston_watkins").steps(sparse(n=n)))[-1] for n in (60, 90, 120, 150)]
        assert all(end.converged for end in ends)
        epochs.append(sum(end.epoch for end in ends))
    assert epochs[0] < epochs[1]


def test_terms_noted_add_up_exactly_at_every_point_of_the_grid():
    rng = np.random.default_rng(0)
    margins, pulls, tops = rng.random(50) + 0.1, rng.normal(size=50), rng.random(50)
    terms = scaling_search.blank()
    for margin, pull, top in zip(margins, pulls, tops, strict=True):
        scaling_search.note(margin, pull, top, terms)
    losses = scaling_search.along(terms)
    for t in (0, 1, 1000, scaling_search.ONE, scaling_search.ONE + 1, scaling_search.LARGEST * scaling_search.ONE):
        expected = (tops * np.maximum(0.0, margins + t / scaling_search.ONE * pulls)).sum()
        assert losses[t] == pytest.approx(expected, rel=1e-9)


def test_points_below_the_least_are_not_looked_at():
    terms = scaling_search.blank()
    scaling_search.note(1.0, -0.9, 1.0, terms)
    value, multiple = scaling_search.best_point(10.0, 0.1, terms)
    assert multiple < 1.0
    assert value < 10.1
    assert scaling_search.best_point(10.0, 0.1, terms, scaling_search.ONE) == (10.1, 1.0)
