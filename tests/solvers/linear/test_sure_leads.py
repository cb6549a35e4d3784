"""Which examples a certificate knows to be answered with their own class: those that scoring them again would find."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems import small
from training import machine

from solvers.core.problem import Problem
from solvers.numerics.rows import sure_leads


@pytest.mark.parametrize(
    ("name", "params", "density"),
    [
        ("weston_watkins", {}, 0.1),
        ("weston_watkins", {"bias": 1.0}, 0.1),
        ("weston_watkins", {"C": 0.1, "dtype": "float64"}, 0.9),
        ("crammer_singer", {}, 0.1),
        ("lee_lin_wahba", {"algorithm": "ascent"}, 0.1),
        ("reinforced", {"algorithm": "ascent"}, 0.1),
        ("one_vs_rest", {"algorithm": "ascent"}, 0.1),
        ("one_vs_rest", {"bias": 1.0, "algorithm": "ascent"}, 0.1),
        ("one_vs_rest", {"loss": "squared_hinge", "algorithm": "ascent"}, 0.1),
        ("softmax", {}, 0.1),
    ],
)
def test_a_certificate_tells_which_examples_the_model_answers_rightly(name, params, density):
    given = small(n=200, d=40, k=40, density=density)
    X, y = given.X, given.y
    # the scores of the last row, which is empty, are equal where there is no bias
    problem = Problem.check(sp.vstack([X[:-1], sp.csr_matrix((1, X.shape[1]))], format="csr"), y)
    filled = (np.arange(len(y)) < len(y) - 1) | ("bias" in params)
    solver = machine(name, **({"tol": 0.05} | params))
    steps = [(step, solver.model(problem, step.state)) for step in solver.steps(problem)]
    reported = [(step, model) for step, model in steps if step.right is not None]
    assert [not np.isnan(step.gap) for step, _ in steps] == [step.right is not None for step, _ in steps]
    assert reported[-1][0].converged
    for step, model in reported:
        np.testing.assert_array_equal(step.right, filled & (model.predict(problem.X) == problem.y))
    assert 0 < np.count_nonzero(reported[-1][0].right) < problem.n_samples


def test_columns_of_a_code_have_no_own_class():
    problem = small()
    code = np.where(np.random.default_rng(0).random((5, 7)) < 0.5, -1, 1).astype(np.int8)
    solver = machine("one_vs_rest").of_code(code)
    assert all(step.right is None for step in solver.steps(problem))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_lead_is_sure_where_no_order_of_summing_turns_it(dtype):
    rng, n, m = np.random.default_rng(0), 2000, 30
    x, w = rng.standard_normal((n, m)).astype(dtype), rng.standard_normal(m).astype(dtype)
    # the other weights differ so that both scores are equal but for a lead of a few roundings
    lead = np.finfo(dtype).eps * 10.0 ** rng.uniform(-1, 4, n)
    other = w - (lead / (x.astype(np.float64) ** 2).sum(axis=1))[:, None] * x
    other = other.astype(dtype)
    terms = x * w, x * other
    norms = float((w.astype(np.float64) ** 2).sum() + (other.astype(np.float64) ** 2).sum(axis=1).max())
    summed = []
    for _ in range(50):
        order = rng.permutation(m)
        first, second = (np.add.accumulate(each[:, order], axis=1, dtype=dtype)[:, -1] for each in terms)
        summed.append(first.astype(np.float64) - second.astype(np.float64))
    sure = sure_leads(summed[0], np.full(n, m), (x.astype(np.float64) ** 2).sum(axis=1), norms, np.dtype(dtype))
    turned = (np.array(summed) <= 0.0).any(axis=0)
    assert turned.any()
    assert sure.any()
    assert not (sure & turned).any()


def test_nothing_is_sure_of_equal_scores_and_of_weights_that_vanish():
    squares = np.ones(3)
    assert not sure_leads(np.zeros(3), np.full(3, 4), squares, 1.0, np.dtype(np.float32)).any()
    tiny = np.full(3, float(np.finfo(np.float32).tiny))
    assert not sure_leads(tiny, np.full(3, 4), squares, 1e-70, np.dtype(np.float32)).any()
