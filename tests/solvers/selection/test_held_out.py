"""Rows held out come as later rows will, and probabilities that are calibrated on them hold for these."""

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.core.problem import Problem
from solvers.registry import make
from solvers.selection.held_out import Fold


def test_rows_held_out_have_no_feature_that_no_training_row_has_and_keep_their_length() -> None:
    X = sp.csr_matrix(np.array([[0.6, 0.8, 0.0], [1.0, 0.0, 0.0], [0.6, 0.0, 0.8], [0.0, 0.0, 1.0]]))
    problem = Problem.check(X, np.array([0, 1, 0, 1]))
    fold = Fold(np.array([0, 1]), np.array([2, 3]))
    found = fold.rows_held_out(problem)
    # a vocabulary of the first two rows lacks the third feature
    np.testing.assert_allclose(found.toarray(), [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    longer = Problem.check(sp.csr_matrix(sp.diags([1.0, 2.0, 3.0, 1.0]) @ X), np.array([0, 1, 0, 1]))
    np.testing.assert_allclose(fold.rows_held_out(longer).toarray(), [[1.8, 0.0, 0.0], [0.0, 0.0, 0.0]])
    whole = Fold(np.array([0, 3]), np.array([1, 2])).rows_held_out(problem)
    np.testing.assert_array_equal(whole.toarray(), X[[1, 2]].toarray())


def test_probabilities_promise_less_where_rows_held_out_lack_what_later_rows_will_lack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random, n, k, d, width = np.random.default_rng(0), 3000, 6, 20_000, 11
    y = random.integers(k, size=n)
    # one word that says the class, of 60, and ten rare ones
    rows = [[label + k * random.integers(60), *random.integers(60 * k, d, size=width - 1)] for label in y]
    values = np.full(width * n, 1.0 / np.sqrt(width))
    X = sp.csr_matrix((values, np.concatenate(rows), width * np.arange(n + 1)), shape=(n, d))
    train, test = np.arange(400), np.arange(400, n)
    problem = Problem.check(X[train], y[train])
    known = np.bincount(problem.X.indices, minlength=d) > 0
    later = sp.csr_matrix(X[test].multiply(known[None, :]))
    lengths = np.sqrt(np.asarray(later.multiply(later).sum(axis=1)).ravel())
    later = sp.csr_matrix(sp.diags(1.0 / np.maximum(lengths, 1e-9)) @ later)

    def excess() -> float:
        """By how much the mean probability of the answers exceeds the share that is right."""
        solver = make("auto", {}, seed=0)
        *_, last = solver.steps(problem)
        found = np.exp(solver.model(problem, last.state).ranking(later).values)
        return float(found.max(axis=1).mean() - (found.argmax(axis=1) == y[test]).mean())

    with_rows_as_they_come = excess()
    monkeypatch.setattr(Fold, "rows_held_out", lambda fold, whole: whole.X[fold.held_out])
    assert with_rows_as_they_come < excess() - 0.015
