"""The interior point method against a general convex solver, and at the ends of what it takes."""

import itertools
import tracemalloc

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from problems import small

from solvers.core.base import relative_gap
from solvers.core.memory import TooLargeError
from solvers.linear.interior.interior_point import Iterate, Losses, estimate_bytes, iterations

INSTANCES = {
    "LLW": ((1.0, 0.0), (1.0, 1.0)),
    "ATS": ((1.0, 1.0), (1.0, 1.0)),
    "MMR": ((1.0, 1.0), (1.0, 0.0)),
    "RM": ((4.0, 0.3), (1.0, 0.7)),
}


def losses_of(problem, name: str, C: float) -> Losses:
    own, rest = INSTANCES[name]
    return Losses.of_classes(problem.y, problem.n_classes, C * problem.weights, own, rest)


def run(X, losses: Losses, tol: float, *, sum_to_zero: bool = True, state=None) -> list[Iterate]:
    """All iterates until the gap is at most tol, their states copied."""
    seen = []
    for it in itertools.islice(iterations(X, losses, sum_to_zero=sum_to_zero, state=state), 150):
        copied = {name: np.array(array) for name, array in it.state.items()}
        seen.append(Iterate(it.number, it.primal, it.dual, it.violation, it.stalled, copied))
        if relative_gap(it.primal, it.dual) <= tol:
            break
    return seen


def objective(X, losses: Losses, W) -> float:
    return 0.5 * (W**2).sum() + (losses.bounds * np.maximum(losses.margins - losses.signs * (X @ W), 0)).sum()


def optimum(X, losses: Losses, C: float, sum_to_zero: bool) -> float:
    """The optimal value; a general solver needs numbers near 1, so C = 1e8 is tried as it is and divided out."""
    values = []
    for scale in {1.0, max(C, 1.0)}:
        V = cp.Variable((X.shape[1], losses.bounds.shape[1]))
        hinge = cp.pos(losses.margins - cp.multiply(losses.signs, X.toarray() @ V))
        total = 0.5 / scale * cp.sum_squares(V) + cp.sum(cp.multiply(losses.bounds / scale, hinge))
        task = cp.Problem(cp.Minimize(total), [cp.sum(V, axis=1) == 0] if sum_to_zero else [])
        try:
            value = task.solve(solver="CLARABEL", tol_gap_rel=1e-11, tol_gap_abs=1e-11, tol_feas=1e-11)
        except cp.SolverError:
            continue
        if task.status == cp.OPTIMAL:
            values.append(scale * float(value))
    return min(values)


@pytest.mark.parametrize("C", [0.1, *(pytest.param(C, marks=pytest.mark.slow) for C in (1e-8, 1.0, 1e4, 1e8))])
@pytest.mark.parametrize("name", INSTANCES)
def test_the_optimum_is_that_of_a_general_solver(name, C):
    problem = small()
    losses = losses_of(problem, name, C)
    value = optimum(problem.X, losses, C, sum_to_zero=True)
    last = run(problem.X, losses, 1e-8)[-1]
    assert not last.stalled
    assert last.primal == pytest.approx(value, rel=1e-7)
    assert last.dual == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize("C", [0.1, 1e4])
def test_without_the_constraint_it_solves_one_machine_a_class(C):
    problem = small()
    losses = losses_of(problem, "ATS", C)
    last = run(problem.X, losses, 1e-8, sum_to_zero=False)[-1]
    assert last.primal == pytest.approx(optimum(problem.X, losses, C, sum_to_zero=False), rel=1e-7)
    assert np.abs(last.state["W"].sum(axis=1)).max() > 1e-3


@pytest.mark.parametrize("C", [1.0, *(pytest.param(C, marks=pytest.mark.slow) for C in (1e-8, 1e8))])
@pytest.mark.parametrize("name", INSTANCES)
def test_every_bound_is_a_certificate_of_what_the_state_holds(name, C):
    problem = small(k=4)
    losses = losses_of(problem, name, C)
    seen = run(problem.X, losses, 1e-9)
    for it in seen:
        W, alpha = it.state["W"], it.state["alpha"]
        assert it.primal >= it.dual >= 0
        assert it.primal == pytest.approx(objective(problem.X, losses, W), rel=1e-12)
        assert np.abs(W.sum(axis=1)).max() <= 1e-13 * max(1.0, np.abs(W).max())
        assert (alpha[losses.bounds == 0] == 0).all()
        assert (alpha >= 0).all()
        assert (alpha <= losses.bounds).all()
        U = problem.X.T @ (losses.signs * alpha)
        U -= U.mean(axis=1, keepdims=True)
        assert it.dual >= ((alpha * losses.margins).sum() - 0.5 * (U**2).sum()) * (1 - 1e-12)
    assert all(b.primal <= a.primal and b.dual >= a.dual for a, b in itertools.pairwise(seen))
    assert seen[-1].violation < 1e-6


@pytest.mark.parametrize("density", [0.1, 0.9])
def test_a_resumed_run_repeats_the_uninterrupted_one_bit_for_bit(density):
    problem = small(density=density)
    losses = losses_of(problem, "LLW", 10.0)
    whole = run(problem.X, losses, 1e-9)
    for stop in (0, len(whole) // 2, len(whole) - 2):
        rest = run(problem.X, losses, 1e-9, state=whole[stop].state)
        assert [it.number for it in rest] == [it.number for it in whole[stop + 1 :]]
        assert (rest[-1].primal, rest[-1].dual) == (whole[-1].primal, whole[-1].dual)
        for key, array in whole[-1].state.items():
            np.testing.assert_array_equal(rest[-1].state[key], array, err_msg=key)


def _awkward() -> dict[str, tuple[np.ndarray, int]]:
    rng = np.random.default_rng(0)
    normal = rng.standard_normal
    return {
        "separable": (normal((40, 60)), 4),
        "duplicate rows": (np.repeat(normal((10, 4)), 6, axis=0), 3),
        "empty rows": (np.vstack([np.zeros((15, 4)), normal((25, 4))]), 3),
        "nothing but empty rows": (np.zeros((12, 3)), 3),
        "two classes": (normal((50, 6)), 2),
        "integers": (rng.integers(0, 3, (80, 6)).astype(float), 4),
        "features of all scales": (normal((60, 8)) * 10.0 ** rng.integers(-6, 7, 8), 4),
        "low rank": (normal((60, 3)) @ normal((3, 10)), 4),
        "wide": (normal((100, 30)), 4),
    }


@pytest.mark.parametrize("C", [*(pytest.param(C, marks=pytest.mark.slow) for C in (1e-8, 1.0)), 1e8])
@pytest.mark.parametrize(
    "name", ["RM", *(pytest.param(name, marks=pytest.mark.slow) for name in ("LLW", "ATS", "MMR"))]
)
@pytest.mark.parametrize("kind", _awkward())
def test_awkward_data_are_solved_to_nine_digits(kind, name, C):
    X, k = _awkward()[kind]
    y = np.random.default_rng(1).integers(0, k, len(X)).astype(np.int32)
    losses = Losses.of_classes(y, k, np.full(len(y), C), *INSTANCES[name])
    last = run(sp.csr_matrix(X), losses, 1e-9)[-1]
    assert relative_gap(last.primal, last.dual) <= 1e-9
    assert last.number <= 40


def test_costs_may_differ_by_twelve_orders_of_magnitude():
    problem = small(n=80)
    costs = 10.0 ** np.random.default_rng(0).integers(-6, 7, problem.n_samples)
    last = run(problem.X, Losses.of_classes(problem.y, problem.n_classes, costs, *INSTANCES["ATS"]), 1e-9)[-1]
    assert relative_gap(last.primal, last.dual) <= 1e-9


def test_signs_margins_and_bounds_may_differ_from_pair_to_pair():
    problem = small()
    rng = np.random.default_rng(0)
    shape = (problem.n_samples, problem.n_classes)
    losses = Losses(
        rng.choice([-1, 1], shape).astype(np.int8), rng.uniform(0, 3, shape), rng.integers(0, 3, shape) * 0.5
    )
    last = run(problem.X, losses, 1e-9)[-1]
    assert last.primal == pytest.approx(optimum(problem.X, losses, 1.0, sum_to_zero=True), rel=1e-7)


def test_an_unreachable_gap_ends_with_a_flag_and_the_best_point():
    problem = small()
    losses = losses_of(problem, "LLW", 1e8)
    seen = run(problem.X, losses, -1.0)
    assert [it.stalled for it in seen] == [False] * (len(seen) - 1) + [True]
    assert len(seen) < 100
    assert relative_gap(seen[-1].primal, seen[-1].dual) <= 1e-9
    assert run(problem.X, losses, -1.0, state=seen[-1].state) == []


def test_without_losses_zero_is_the_answer():
    problem = small()
    last = run(problem.X, losses_of(problem, "LLW", 0.0), -1.0)[-1]
    assert (last.primal, last.dual, last.stalled) == (0.0, 0.0, True)


def test_too_large_a_problem_is_refused_at_once_and_told_why():
    problem = small()
    losses = losses_of(problem, "LLW", 1.0)
    with pytest.raises(TooLargeError, match=r"GiB for 50 examples, 12 features and 5 classes; the limit is 0\.0 GiB"):
        iterations(problem.X, losses, sum_to_zero=True, limit_bytes=1000)


@pytest.mark.parametrize(("n", "d", "k"), [(4000, 20, 8), pytest.param(1500, 150, 6, marks=pytest.mark.slow)])
def test_memory_stays_within_the_estimate_and_not_far_below(n, d, k):
    rng = np.random.default_rng(0)
    X = sp.csr_matrix(rng.standard_normal((n, d)))
    y = rng.integers(0, k, n).astype(np.int32)
    losses = Losses.of_classes(y, k, np.ones(n), *INSTANCES["LLW"])
    tracemalloc.start()
    try:
        list(itertools.islice(iterations(X, losses, sum_to_zero=True), 3))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.5 * estimate_bytes(n, d, k) <= peak <= estimate_bytes(n, d, k)


def test_sparse_and_dense_ways_through_the_data_agree(monkeypatch):
    problem = small(n=80, d=30, density=0.6)
    losses = losses_of(problem, "RM", 3.0)
    dense = run(problem.X, losses, 1e-9)
    monkeypatch.setattr("solvers.linear.interior.normal_equations.DENSE", 2.0)
    sparse = run(problem.X, losses, 1e-9)
    assert len(dense) == len(sparse)
    np.testing.assert_allclose(sparse[-1].state["W"], dense[-1].state["W"], atol=1e-6)
