"""Sparse and dense rows are two ways to the same numbers."""

from collections import deque

import numpy as np
import pytest
import scipy.sparse as sp
from problems import small
from training import machine, trained

import solvers.linear.layouts.layouts
from solvers.linear.layouts.layouts import DenseLayout, SparseLayout

METHODS = ("weston_watkins", "crammer_singer")


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("k", [2, 5, 19])
def test_both_layouts_reach_the_same_optimum(name, k, monkeypatch):
    problem = small(n=120, d=21, k=k)
    values, weights = [], []
    for threshold, kind in ((0.0, DenseLayout), (2.0, SparseLayout)):
        monkeypatch.setattr(solvers.linear.layouts.layouts, "DENSE_FROM", threshold)
        assert isinstance(machine(name).ascent.loss.layout(problem), kind)
        last, model = trained(name, problem, tol=1e-8, max_epochs=100_000)
        assert last.converged
        values.append(last.primal)
        weights.append(model.coef)
    assert values[0] == pytest.approx(values[1], rel=1e-7)
    np.testing.assert_allclose(weights[0], weights[1], atol=1e-3 * np.abs(weights[0]).max())


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("slices", [1 << 27, 50])
def test_sparse_rows_resume_bit_for_bit_too(name, slices, monkeypatch):
    monkeypatch.setattr(solvers.linear.driver.ascent, "SLICE_OPERATIONS", slices)
    problem = small(n=80, d=40, density=0.1)
    method = machine(name, tol=1e-3)
    assert isinstance(method.ascent.loss.layout(problem), SparseLayout)
    n_steps = sum(1 for _ in method.steps(problem))
    assert n_steps > 2
    stops, states = range(0, n_steps - 1, max(1, n_steps // 10)), {}
    for place, step in enumerate(method.steps(problem)):
        if place in stops or place == n_steps - 1:
            states[place] = {key: np.array(value) for key, value in step.state.items()}
    for stop in stops:
        ((left, last),) = deque(enumerate(method.steps(problem, states[stop]), 1), maxlen=1)
        assert left == n_steps - stop - 1
        for key, array in states[n_steps - 1].items():
            np.testing.assert_array_equal(last.state[key], array, err_msg=key)


def test_unused_features_take_no_room_in_dense_rows():
    X = sp.csr_matrix(np.array([[0.0, 1.0, 0.0, 2.0], [0.0, 3.0, 0.0, 4.0]]))
    layout = DenseLayout.from_matrix(X, 3, np.dtype(np.float32))
    np.testing.assert_array_equal(layout.features, [1, 3])
    np.testing.assert_array_equal(layout.rows.data[:, :2], [[1, 2], [3, 4]])
    np.testing.assert_array_equal(layout.rows.squares, [5, 25])
    assert not layout.rows.data[:, 2:].any()
