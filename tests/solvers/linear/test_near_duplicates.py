"""Joint steps on near-duplicates: the optimum of a group, the dual never falls, and large C on rows that contradict."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from training import machine

from solvers.core.problem import Problem
from solvers.linear import near_duplicates, sum_to_zero
from solvers.linear.near_duplicates import Group


def group_of(cosine: float, k: int = 5, C: float = 50.0) -> Group:
    """Two rows of length 1 of the classes 0 and 1."""
    own = np.arange(k) == np.array([[0], [1]])
    return Group(np.array([[1.0, cosine], [cosine, 1.0]]), np.where(own, 1.0, -1.0), np.where(own, 0.0, C))


def optimum(group: Group, alpha: np.ndarray, gradient: np.ndarray) -> float:
    """By Clarabel: the largest gain of the dual."""
    n, k = alpha.shape
    d = cp.Variable((n, k))
    signed = cp.multiply(group.signs, d)
    v = signed - cp.sum(signed, axis=1, keepdims=True) @ np.full((1, k), 1.0 / k)
    root = np.linalg.cholesky(group.G + 1e-13 * np.eye(n)).T
    gain = cp.sum(cp.multiply(gradient, d)) - 0.5 * cp.sum_squares(root @ v)
    return float(cp.Problem(cp.Maximize(gain), [d >= -alpha, d <= group.box - alpha]).solve(solver="CLARABEL"))


@pytest.mark.parametrize("cosine", [0.8, 0.95, 0.999, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_group_ends_at_its_optimum(cosine, seed):
    rng, group = np.random.default_rng(seed), group_of(cosine)
    alpha = rng.uniform(0.0, 1.0, group.box.shape) ** 3 * group.box
    gradient = 1.0 + rng.normal(size=alpha.shape)
    gradient[group.box == 0.0] = 0.0
    found, gain = near_duplicates.best_variables(group, alpha, gradient)
    assert (found >= 0.0).all()
    assert (found <= group.box).all()
    change = found - alpha
    assert gain == pytest.approx(
        float((gradient * change).sum() - 0.5 * (change * group.slope(change)).sum()), rel=1e-6
    )
    best = optimum(group, alpha, gradient)
    assert best * (1.0 - 1e-3) - 1e-6 <= gain <= best * (1.0 + 1e-6) + 1e-6


def test_the_closest_pairs_of_two_classes_are_joined_first():
    X = np.array([[1.0, 0.0], [0.99, 0.1], [0.9, 0.4], [0.0, 1.0], [0.0, 2.0]])
    y = np.array([0, 1, 0, 2, 2])
    assert [group.tolist() for group in near_duplicates.groups(X @ X.T, y, 2)] == [[0, 1]]
    assert [group.tolist() for group in near_duplicates.groups(X @ X.T, y, 3)] == [[0, 1, 2]]


def contradicting(n: int = 400, d: int = 900, k: int = 5) -> Problem:
    """Sparse rows that can be separated, but for two pairs of different classes: one equal, one next to each other."""
    rng = np.random.default_rng(0)
    X = sp.random(n, d, 0.02, format="lil", random_state=0)
    X[1], X[3] = X[0], X[2]
    X[3, 5] = 0.1
    y = rng.integers(0, k, n)
    y[:4] = 0, 1, 2, 3
    X = sp.csr_matrix(X)
    return Problem.check(sp.csr_matrix(X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1)))), y.astype(np.int32))


@pytest.mark.parametrize("name", ["lee_lin_wahba", "absolute_sum", "reinforced"])
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_rows_that_contradict_each_other_need_a_fifth_of_the_epochs(monkeypatch, name, bias):
    epochs, objectives = [], []
    for every in (sum_to_zero.JOINT_EVERY, 10**9):
        monkeypatch.setattr(sum_to_zero, "JOINT_EVERY", every)
        solver = machine(name, C=1e4, tol=1e-3, dtype="float64", max_epochs=20_000, bias=bias, algorithm="ascent")
        *_, last = solver.steps(contradicting())
        assert last.converged
        epochs.append(last.epoch)
        objectives.append(last.primal)
    assert 5 * epochs[0] <= epochs[1]
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-3)


def test_a_resumed_run_moves_the_same_groups():
    solver = machine("lee_lin_wahba", C=1e3, tol=1e-3, algorithm="ascent")
    steps = [{name: np.array(array) for name, array in step.state.items()} for step in solver.steps(contradicting())]
    *_, last = solver.steps(contradicting(), steps[len(steps) // 2])
    for name, array in steps[-1].items():
        np.testing.assert_array_equal(last.state[name], array)
