"""Block ascent on absolute margins: the multiple of W that a certificate is of, and that is served."""

import numpy as np
import pytest
import training
from problems import small
from scipy.optimize import minimize_scalar

from solvers.linear.steps import absolute
from solvers.numerics import scaling_search

SUMMED = ["lee_lin_wahba", "absolute_sum", "maximum_margin_regression", "reinforced"]


def machine(name, **params):
    return training.machine(name, **({"algorithm": "ascent", "C": 300.0, "tol": 0.05} | params))


def copied(state):
    return {name: np.array(array) for name, array in state.items()}


def objective(solver, problem, W):
    """The definition: half the squared length, and C times the losses that the method's margins ask for."""
    own, other, own_share, other_share, _ = solver.margins(problem.n_classes)
    F, true = problem.X @ W.T, np.eye(problem.n_classes, dtype=bool)[problem.y]
    losses = np.where(true, own_share * np.maximum(0, own - F), other_share * np.maximum(0, other + F))
    return 0.5 * (W**2).sum() + solver.params.C * losses.sum()


@pytest.mark.parametrize("name", SUMMED)
def test_the_certificate_is_of_the_best_multiple_of_w_and_so_is_the_model(name):
    problem, solver, scales = small(n=80, d=6), machine(name, dtype="float64"), []
    for step in solver.steps(problem):
        if np.isnan(step.gap):
            continue
        scales.append(float(step.state["scale"][0]))
        W = solver.model(problem, step.state).coef
        assert step.primal == pytest.approx(objective(solver, problem, W), rel=1e-9)
        # a multiple of 0 is of no weights at all
        base = W / scales[-1] if scales[-1] > 0 else W
        best = minimize_scalar(lambda s, W=base: objective(solver, problem, s * W), bounds=(0, 2), method="bounded")
        assert step.primal <= best.fun * (1 + 1e-4)
        assert step.dual <= best.fun
    assert step.converged
    assert min(scales) < 1 or name != "lee_lin_wahba"


def test_at_a_large_c_the_gap_closes_in_half_the_epochs(monkeypatch):
    problem, epochs = small(n=60, d=60), []
    for best_point in (scaling_search.best_point, lambda half, loss, *_: (half + loss, 1.0)):
        monkeypatch.setattr(scaling_search, "best_point", best_point)
        *_, last = machine("lee_lin_wahba", C=1e3, tol=1e-2).steps(problem)
        assert last.converged
        epochs.append(last.epoch)
    assert 2 * epochs[0] <= epochs[1]


def test_a_resumed_run_takes_up_the_multiple(monkeypatch):
    problem, solver = small(n=80, d=6), machine("lee_lin_wahba")
    steps = [(step.epoch, step.primal, copied(step.state)) for step in solver.steps(problem)]
    middle = next(t for t, (_, _, state) in enumerate(steps) if state["scale"][0] != 1)
    *_, last = solver.steps(problem, steps[middle][2])
    assert last.primal == steps[-1][1]
    for name, array in steps[-1][2].items():
        np.testing.assert_array_equal(last.state[name], array)


def test_the_objective_of_the_scaling_search_is_exact_at_every_point_of_the_grid():
    problem, solver = small(n=40), machine("reinforced", dtype="float64")
    *_, last = solver.steps(problem)
    task, layout = solver.ascent.task(problem)
    run = solver.ascent.resumed(task, layout, last.state)
    terms = scaling_search.blank()
    measured = (run.W, run.duals.values, np.zeros(40), np.zeros(40), terms, np.zeros(2))
    absolute.certify(task, solver.margins(task.n_classes), *measured, 0, 40)
    losses = scaling_search.along(terms)
    W = solver.model(problem, copied(last.state) | {"scale": np.ones(1)}).coef
    for t in (0, 1, 2500, 4096, 8192):
        s = t / scaling_search.ONE
        expected = objective(solver, problem, s * W) - 0.5 * s * s * (W**2).sum()
        assert losses[t] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["absolute_maximum", "absolute_total"])
def test_machines_of_the_largest_violation_keep_w(name):
    solver = training.machine(name, C=10.0, tol=0.2)
    *_, last = solver.steps(small())
    assert last.state["scale"] == 1
