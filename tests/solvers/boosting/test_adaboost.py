"""AdaBoost.ECC, MH and MO against their definitions, written down with nothing but numpy."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems import small
from sklearn.datasets import load_digits
from training import machine

from solvers.boosting.adaboost_steps import SPARE, LossPlateau, half_log_odds
from solvers.core.base import ParamsError
from solvers.core.problem import Problem
from solvers.output_codes.code_families import make
from solvers.registry import parse_params

ROUNDS = 6


def weighted(k: int = 4) -> Problem:
    """Examples of different weights, so that hardly any two weak learners are equally good."""
    base = small(n=70, d=5, k=k)
    return Problem.check(base.X, base.y, base.classes, np.random.default_rng(1).uniform(0.5, 2.0, 70))


def stumps(problem: Problem) -> np.ndarray:
    """What every stump says of every row; the constant comes first."""
    columns = [np.ones(problem.n_samples)]
    for x in problem.X.toarray().T:
        values = np.unique(x)
        columns += [np.where(x <= cut, 1.0, -1.0) for cut in (values[:-1] + values[1:]) / 2]
    return np.array(columns)


def outcome(name: str, problem: Problem, rounds: int = ROUNDS, seed: int = 0, **params):
    """The loss after every round, and the model."""
    method = machine(name, seed=seed, **({"bins": "exact", "max_epochs": rounds} | params))
    losses = []
    for step in method.steps(problem):
        losses.append(step.primal)
    return losses, method.model(problem, step.state)


def output_rounds(problem: Problem, code: np.ndarray, sharing: str) -> tuple[list[float], np.ndarray]:
    """Losses and outputs of AdaBoost on the columns of a code."""
    H, Y = stumps(problem), code[problem.y].T.astype(float)
    counted = np.abs(Y).T * problem.weights[:, None]
    f, w = np.zeros(Y.shape), (counted / counted.sum()).T
    losses = []
    for _ in range(ROUNDS):
        total, u = w.sum(), w * Y
        edges = u @ H.T
        if sharing == "own":
            for l in range(len(f)):
                h = H[np.abs(edges[l]).argmax()]
                f[l] += half_log_odds(w[l][Y[l] * h > 0].sum(), w[l][Y[l] * h < 0].sum(), total) * h
        elif sharing == "sign":
            best = np.abs(edges).sum(axis=0).argmax()
            right = 0.5 * (total + np.abs(edges[:, best]).sum())
            f += half_log_odds(right, total - right, total) * np.sign(edges[:, best])[:, None] * H[best]
        else:
            left = []
            for h in H:
                sides = [[(w * ((y == Y) & (h == side))).sum(axis=1) for y in (1, -1)] for side in (1, -1)]
                left.append(sum(np.sqrt(plus * minus).sum() for plus, minus in sides))
            h = H[np.argmin(left)]
            for side in (1, -1):
                for l in range(len(f)):
                    plus, minus = (w[l][(Y[l] == y) & (h == side)].sum() for y in (1, -1))
                    f[l, h == side] += half_log_odds(plus, minus, total)
        w = np.where(Y != 0, np.exp(-Y * f), 0.0) * problem.weights / counted.sum()
        losses.append(w.sum())
    return losses, f


@pytest.mark.parametrize("sharing", ["own", "sign", "real"])
@pytest.mark.parametrize("k", [4, 11])
def test_mh_takes_the_steps_of_its_definition(k, sharing):
    problem = weighted(k)
    expected, f = output_rounds(problem, 2 * np.eye(k) - 1, sharing)
    losses, model = outcome("adaboost_mh", problem, sharing=sharing)
    np.testing.assert_allclose(losses, expected, rtol=1e-6)
    np.testing.assert_allclose(model.scores(problem.X), f.T, atol=1e-5)


@pytest.mark.parametrize("sharing", ["own", "sign", "real"])
@pytest.mark.parametrize("family", ["dense_random", "sparse_random", "all_pairs", "exhaustive"])
def test_mo_takes_the_steps_of_its_definition_and_decodes_by_loss(family, sharing):
    problem = weighted()
    code = make(family, 4, None, 3)
    expected, f = output_rounds(problem, code, sharing)
    losses, model = outcome("adaboost_mo", problem, seed=3, sharing=sharing, code=family)
    np.testing.assert_allclose(losses, expected, rtol=1e-6)
    decoded = np.array([[-np.exp(-row[row != 0] * f.T[i][row != 0]).sum() for row in code] for i in range(70)])
    np.testing.assert_allclose(model.scores(problem.X), decoded, rtol=1e-4)


@pytest.mark.parametrize("k", [2, 5])
def test_ecc_takes_the_steps_of_its_definition(k):
    problem = weighted(k)
    H, y, n = stumps(problem), problem.y, problem.n_samples
    F, other = np.zeros((n, k)), 1 - np.eye(k)[y]
    share = problem.weights[:, None] * other / ((k - 1) * problem.weights.sum())
    losses, model = outcome("adaboost_ecc", problem, seed=5)
    for t in range(ROUNDS):
        D = share * np.exp((F - F[np.arange(n), y][:, None]) / 2)
        colours = np.where(np.random.default_rng([5, t + 1, 1 << 20]).permutation(k) < k // 2, 1.0, -1.0)
        assert abs(colours.sum()) <= 1
        u = colours[y] * (D * (colours[None] != colours[y][:, None])).sum(axis=1)
        h = H[np.abs(H @ u).argmax()]
        alpha = half_log_odds(u @ h / 2 + np.abs(u).sum() / 2, np.abs(u).sum() / 2 - u @ h / 2, np.abs(u).sum())
        F += alpha * h[:, None] * colours
        loss = (share * np.exp((F - F[np.arange(n), y][:, None]) / 2)).sum()
        assert losses[t] == pytest.approx(loss, rel=1e-6)
    np.testing.assert_allclose(model.scores(problem.X), F, atol=1e-5)


@pytest.mark.parametrize("name", ["adaboost_ecc", "adaboost_mh", "adaboost_mo"])
def test_weights_equal_repeated_rows_in_the_first_rounds(name):
    base = small(n=40, k=3)
    times = np.random.default_rng(0).integers(1, 4, 40)
    rows = np.repeat(np.arange(40), times)
    repeated = Problem.check(base.X[rows], base.y[rows])
    by_weight = Problem.check(base.X, base.y, weights=times)
    one, two = (outcome(name, problem, rounds=2)[0] for problem in (repeated, by_weight))
    np.testing.assert_allclose(one, two, rtol=1e-6)


def test_a_learner_without_fault_gets_a_finite_weight():
    assert half_log_odds(1.0, 0.0, 1.0) == pytest.approx(0.5 * np.log(1 / SPARE), rel=1e-4)
    assert half_log_odds(0.0, 0.3, 1.0) < 0
    assert half_log_odds(0.0, 0.0, 0.0) == 0.0


def test_training_ends_when_ten_rounds_in_a_row_have_gained_too_little():
    plateau = LossPlateau(0.1)
    assert not any(plateau.reached(loss) for loss in [1.0, 0.5, *np.linspace(0.44, 0.439, 10)])
    assert plateau.reached(0.439)
    again = LossPlateau(0.1)
    assert not any(again.reached(loss) for loss in [1.0, *[0.99] * 9, 0.5, *[0.49] * 9])
    assert again.reached(0.49)
    assert LossPlateau(0.1).reached(0.0)


def test_only_stumps_can_be_shared():
    for params in ({"sharing": "sign", "depth": 2}, {"sharing": "real", "weak_learner": "one_vs_rest"}):
        with pytest.raises(ParamsError, match="shared stumps need"):
            parse_params("adaboost_mh", params)


@pytest.mark.parametrize("sharing", ["sign", "real"])
def test_a_shared_stump_does_not_depend_on_threads(sharing, monkeypatch):
    monkeypatch.setattr("solvers.boosting.weak_learners.stumps.PIECE", 100)
    monkeypatch.setattr("solvers.boosting.adaboost_outputs.PIECE", 100)
    problem = weighted()
    ends = []
    for threads in (1, 3):
        method = machine("adaboost_mh", threads=threads, sharing=sharing, max_epochs=9)
        *_, last = method.steps(problem)
        ends.append(last.state)
    for key, array in ends[0].items():
        np.testing.assert_array_equal(ends[1][key], array, err_msg=key)


def test_digits_are_learned_by_all():
    X, y = load_digits(return_X_y=True)
    X, train, test = sp.csr_matrix(X), np.arange(len(y)) % 3 > 0, np.arange(len(y)) % 3 == 0
    problem = Problem.check(X[train], y[train])
    errors = {}
    for name in ("adaboost_ecc", "adaboost_mh", "adaboost_mo", "multiboost_cw"):
        method = machine(name, max_epochs=150)
        *_, last = method.steps(problem)
        errors[name] = np.mean(method.model(problem, last.state).predict(X[test]) != y[test])
    assert max(errors.values()) < 0.12
    assert errors["multiboost_cw"] < 0.07
