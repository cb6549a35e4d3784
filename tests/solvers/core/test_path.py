"""A path in C: every point is solved, and what was learnt at one helps at the next."""

import numpy as np
import pytest
import training
from problems import check_path, last_of, path_ends, settings, small

from solvers.core.machine import Machine, SingleLabelParams
from solvers.linear import augmented_lagrangian
from solvers.linear.interior.interior_point import Losses, around
from solvers.linear.relative_margins import RelativeMargins
from solvers.linear.sum_to_zero import SummedParams, SumToZero
from solvers.methods.one_vs_rest import OneVsRest
from solvers.registry import SOLVERS

CS = [float(C) for C in np.logspace(-2, 0.5, 6)]
CASES = [
    (name, {})
    for name, kind in SOLVERS.items()
    if issubclass(kind.Params, SingleLabelParams) and kind.has_path and kind.handles.flat
] + [(name, {"algorithm": "ascent"}) for name, kind in SOLVERS.items() if issubclass(kind.Params, SummedParams)]
CASES += [("one_vs_rest", {"loss": "squared_hinge"}), ("spoc", {"kernel": "rbf"}), ("weston_watkins", {"bias": 1.0})]
SLOW = [("lee_lin_wahba", {}), ("spoc", {"kernel": "rbf"})]
everywhere = pytest.mark.parametrize(("name", "params"), CASES)


def machine(name: str, **params) -> Machine:
    return training.machine(name, **settings(name, **params))


@pytest.mark.parametrize(
    ("name", "params"),
    # solved by interior points it takes as long as all others together, and kernels are compiled for it alone
    [pytest.param(*case, marks=pytest.mark.slow) if case in SLOW else case for case in CASES],
)
def test_every_point_reaches_its_gap_in_fewer_epochs_than_alone(name, params, monkeypatch):
    # proximal steps end a run in whatever epoch they begin
    monkeypatch.setattr(augmented_lagrangian, "suits", lambda *size: False)
    made, on_the_path, of_their_own = machine(name, tol=1e-2, **params), 0, 0
    for seed in range(4):
        took, alone = check_path(made, small(n=200, d=20, k=6, seed=seed), CS[::-1])
        on_the_path += took
        of_their_own += alone
    # of a single problem it is a matter of chance, as certificates fall on every tenth epoch
    assert on_the_path < of_their_own


@everywhere
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_first_bounds_after_a_jump_are_true(name, params, dtype):
    problem = small(n=60)
    precise = {} if SOLVERS[name].handles.kernels else {"dtype": dtype}
    made = machine(name, tol=1e-3, **precise, **params)
    low = last_of(made.at(0.1).steps(problem))
    high = last_of(made.at(3.0).steps(problem))
    for C, before, other, exact in ((3.0, 0.1, low, high), (0.1, 3.0, high, low)):
        at = made.at(C)
        start = at.rescaled(problem, other.state, before)
        first = next(step for step in at.steps(problem, start) if not np.isnan(step.gap))
        assert first.gap >= 0
        assert first.dual <= exact.primal * (1 + 1e-6)
        assert first.primal >= exact.dual * (1 - 1e-6)


@everywhere
def test_a_state_is_not_changed_by_what_is_made_of_it(name, params):
    problem = small(n=60)
    made = machine(name, tol=1e-3, **params)
    end = last_of(made.steps(problem))
    kept = {key: np.array(value) for key, value in end.state.items()}
    start = made.at(2.0).rescaled(problem, end.state, 1.0)
    last_of(made.at(2.0).steps(problem, start))
    for key, value in kept.items():
        np.testing.assert_array_equal(end.state[key], value, err_msg=key)


@everywhere
def test_a_path_gone_on_with_in_the_middle_ends_the_same(name, params):
    problem = small(n=60)
    made = machine(name, tol=1e-3, **params)
    ends = path_ends(made, problem, CS[:4])
    again = path_ends(made, problem, CS[:4], first=2, start=ends[2][2])
    for (_, end, _), (_, other, _) in zip(ends[2:], again, strict=True):
        assert (end.epoch, end.primal, end.dual) == (other.epoch, other.primal, other.dual)
        for key, value in end.state.items():
            np.testing.assert_array_equal(other.state[key], value, err_msg=key)


@pytest.mark.parametrize(
    "name", [name for name, kind in SOLVERS.items() if issubclass(kind, RelativeMargins | SumToZero | OneVsRest)]
)
def test_where_all_variables_stand_at_their_bounds_the_jump_is_the_solution(name):
    problem = small(n=60)
    made = machine(name, tol=1e-6, C=1e-7)
    if isinstance(made.params, SummedParams):
        made = machine(name, tol=1e-6, C=1e-7, algorithm="ascent")
    end = last_of(made.steps(problem))
    start = made.at(1e-6).rescaled(problem, end.state, 1e-7)
    W, before = np.asarray(start["W"]), np.asarray(end.state["W"])
    np.testing.assert_allclose(W, 10.0 * before, rtol=1e-6, atol=1e-12)
    assert last_of(made.at(1e-6).steps(problem, start)).epoch == 1


def test_points_are_taken_in_ascending_order_and_once():
    made = machine("weston_watkins", tol=0.5)
    assert [at.params.C for at in made.at_each([3.0, 0.1, 3.0, 1.0])] == [0.1, 1.0, 3.0]
    assert {at.params.tol for at in made.at_each([3.0, 0.1])} == {0.5}


def test_a_new_interior_point_is_centred_around_the_weights_that_it_is_given():
    problem = small(n=40)
    losses = Losses.of_classes(problem.y, 5, np.linspace(0.5, 2.0, 40), (0.0, 0.0), (1.0, 1.0))
    W = np.random.default_rng(0).standard_normal((problem.n_features, 5))
    state = around(problem.X, losses, W)
    present = losses.bounds > 0
    margins = (losses.margins - losses.signs * (problem.X @ W))[present]
    primal = 0.5 * (W**2).sum() + (losses.bounds[present] * np.maximum(margins, 0)).sum()
    alpha, beta, slack, xi = (state[name][present] for name in ("alpha", "beta", "slack", "xi"))
    np.testing.assert_allclose(alpha + beta, losses.bounds[present], rtol=1e-9)
    np.testing.assert_allclose(xi - slack, margins, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(alpha * slack, primal / present.sum(), rtol=1e-9)
    np.testing.assert_allclose(beta * xi, primal / present.sum(), rtol=1e-9)
    assert (np.array([alpha, beta, slack, xi]) > 0).all()
    assert not any(state[name][~present].any() for name in ("alpha", "beta", "slack", "xi"))
