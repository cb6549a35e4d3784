"""A path over all C: the gap that it certifies between its solutions, and the errors that no C can undercut."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from problems import ORACLES, last_of, small

from solvers.core.base import Step
from solvers.core.problem import Problem, ProblemError
from solvers.estimator.classifier import PolymarginClassifier
from solvers.registry import make
from solvers.selection.path_bounds import Between, Rows, Solved
from solvers.selection.whole_path import Solution, WholePath

LOW, HIGH = 1e-2, 10.0
# duals whose weights are known, and not: separate classes, a bias that is held back, interior points, another dual
CASES: list[tuple[str, dict[str, Any]]] = [
    ("crammer_singer", {}),
    ("weston_watkins", {}),
    ("one_vs_rest", {}),
    ("softmax", {}),
    ("softmax", {"bias": 1.0, "class_weight": "balanced"}),
    ("crammer_singer", {"bias": 10.0}),
    ("one_vs_rest", {"loss": "squared_hinge"}),
    ("lee_lin_wahba", {}),
    ("lee_lin_wahba", {"algorithm": "ascent"}),
    ("reinforced", {"algorithm": "ascent"}),
]
QUICK = CASES[0], CASES[2]
# rows, features and classes: with four, a single exact training by ascent takes 27,000 epochs, and wrong bounds, such
# as a tenth of the radius, are noticed as with three
WHOLE, FEWER = (90, 10, 4), (90, 10, 3)
BY_ASCENT = CASES[8], CASES[9]


@dataclass
class Piece:
    between: Between
    here: Solution
    there: Solution

    def mixture(self, C: float) -> tuple[float, Any]:
        """The share of the second solution at C, and the weights there, those of the constant feature last."""
        share = (C - self.between.low.C) / (self.between.high.C - self.between.low.C)
        parts = zip(self.here.weights, self.there.weights, strict=True)
        return share, np.vstack([(1.0 - share) * np.atleast_2d(a) + share * np.atleast_2d(b) for a, b in parts])


class Watched(WholePath):
    """A path that remembers all pairs of solutions that it has compared."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.pieces: list[Piece] = []

    def between(self, low: Solved, high: Solved, here: Solution, there: Solution) -> Between:
        found = super().between(low, high, here, there)
        self.pieces.append(Piece(found, here, there))
        return found

    def piece(self, C: float, eps: float) -> Piece:
        return next(
            each
            for each in self.pieces
            if each.between.low.C <= C <= each.between.high.C and each.between.largest_gap <= eps
        )


def watched(name: str, params: dict[str, Any], eps: float, problem: Problem) -> tuple[Watched, dict[str, Any], Step]:
    path = Watched(make(name, params), eps=eps, low=LOW, high=HIGH)
    last = last_of(path.steps(problem))
    return path, path.model(problem, last.state).record["path"], last


def held_out(path: WholePath, problem: Problem) -> tuple[Problem, sp.csr_matrix, Any]:
    fold = path.split(problem)
    return fold.problem(problem), problem.X[fold.held_out], problem.y[fold.held_out]


class Objective:
    """The primal objective, written down a second time."""

    def __init__(self, name: str, params: dict[str, Any], part: Problem) -> None:
        losses_of, _ = ORACLES[f"{name}, squared hinge" if "loss" in params else name.partition(",")[0]]
        X, bias = part.X.toarray(), params.get("bias", 0.0)
        if bias > 0:
            X = np.hstack([X, np.full((len(X), 1), bias)])
        self.variable, self.losses = losses_of(X, part.y, part.n_classes)
        self.weights = make(name, params).example_weights(part)

    def at(self, C: float, W: Any) -> float:
        """W has the shape (n_features, n_classes)."""
        self.variable.value = W.T
        return 0.5 * float((W**2).sum()) + C * sum(
            float(w) * float(loss.value) for w, loss in zip(self.weights, self.losses, strict=True)
        )


@pytest.mark.parametrize(
    ("name", "params", "shape", "n_Cs"),
    [
        *((*case, WHOLE, 12) for case in QUICK),
        *(pytest.param(*case, FEWER if case in BY_ASCENT else WHOLE, 200, marks=pytest.mark.slow) for case in CASES),
    ],
)
def test_every_c_has_a_model_within_eps_and_no_optimum_beats_the_bound_of_errors(name, params, shape, n_Cs):
    problem, eps = small(*shape, seed=3), 0.01
    params = {"dtype": "float64", **params}
    path, record, _ = watched(name, params, eps, problem)
    part, X, y = held_out(path, problem)
    objective = Objective(name, params, part)
    edges, least, most = (np.array(record[each]) for each in ("edges", "least_errors", "most_errors"))
    assert record["largest_gap"] <= eps
    assert (edges[0], edges[-1]) == (LOW, HIGH)
    decided, last, before = [], None, 0.0
    for C in np.geomspace(LOW, HIGH, n_Cs):
        solver = make(name, {**params, "C": float(C), "tol": 1e-9, "max_epochs": 10**6})
        # exact trainings start from each other, never from the path that they check
        start = None if last is None else solver.rescaled(part, last.state, before)
        last, before = last_of(solver.steps(part, start)), float(C)
        assert last.converged
        piece = path.piece(C, eps)
        share, W = piece.mixture(C)
        primal, dual = piece.between.primal(share), piece.between.dual(share)
        assert dual <= last.primal * (1.0 + 1e-9)
        assert primal >= last.dual * (1.0 - 1e-9)
        assert primal - last.dual <= eps * primal
        assert objective.at(C, W) <= primal * (1.0 + 1e-9)
        errors = int((solver.model(part, last.state).scores(X).argmax(axis=1) != y).sum())
        cell = min(int(np.searchsorted(edges, C, side="right")) - 1, len(least) - 1)
        assert least[cell] <= errors <= most[cell]
        decided.append(len(y) - (most[cell] - least[cell]))
    assert record["bound"] == least.min()
    assert max(decided) > 0 or "bias" in params


def test_exact_ends_leave_the_gap_of_their_distance_from_a_straight_path():
    # 1/2 w^2 + C (1 - w)_+ has w = C up to 1 and stays there; between 0.5 and 2 the mixtures leave the path
    low, high = Solved(0.5, 0.375, 0.375, 0.25, 1.0), Solved(2.0, 0.5, 0.5, 1.0, 1.0)
    between = Between(low, high, 0.5, 1e-16)
    t = np.linspace(0.0, 1.0, 11)
    np.testing.assert_allclose((between.primal - between.dual)(t), t * (1 - t) * (1.5 * 0.5 - 0.25), atol=1e-12)
    straight = Between(low, Solved(1.0, 0.5, 0.5, 1.0, 1.0), 0.5, 1e-16)
    assert straight.largest_gap == pytest.approx(0.0, abs=1e-12)
    assert between.largest_gap == pytest.approx(max((between.primal - between.dual)(t) / between.primal(t)), rel=1e-2)


@pytest.mark.parametrize(
    "params", [{}, {"bias": 10.0}, {"loss": "squared_hinge", "algorithm": "ascent"}, {"loss": "squared_hinge"}]
)
def test_each_class_has_a_ball_of_its_own_that_holds_its_optimum(params):
    problem = small(n=90, d=10, k=4, seed=3)
    params = {"dtype": "float64", **params}
    path, _, _ = watched("one_vs_rest", params, 0.05, problem)
    part, _, _ = held_out(path, problem)
    for piece in path.pieces:
        classes = path.classes(piece.between, piece.here, piece.there)
        low, high = piece.between.low, piece.between.high
        for bounds, end in ((classes.low, low), (classes.high, high)):
            assert bounds.primal.sum() == pytest.approx(end.primal)
            assert bounds.dual.sum() == pytest.approx(end.dual)
            assert bounds.squares.sum() == pytest.approx(end.square)
        if not piece.between.largest_gap <= 0.05:
            continue
        radii = classes.radii(low.C, high.C, 0.0, 1.0)
        C = np.sqrt(low.C * high.C)
        last = last_of(make("one_vs_rest", {**params, "C": C, "tol": 1e-10, "max_epochs": 10**6}).steps(part))
        exact = make("one_vs_rest", {**params, "C": C}).model(part, last.state)
        share, W = piece.mixture(C)
        due = exact.linear_weights()
        V = due.W if "bias" not in params else np.vstack([due.W, due.intercept / params["bias"]])
        distance = np.sqrt(((W - V) ** 2).sum(axis=0))
        assert (distance <= classes.radii(low.C, high.C, share, share) + 1e-4).all()
        assert (classes.radii(low.C, high.C, share, share) <= radii + 1e-12).all()


def test_where_weights_of_the_dual_are_not_known_the_bound_is_the_chord_and_the_ball_is_wider():
    low, high = Solved(0.5, 0.375, 0.375, 0.25, np.nan), Solved(2.0, 0.5, 0.5, 1.0, 1.0)
    between, known = Between(low, high, 0.5, 1e-16), Between(low._replace(multiple=1.0), high, 0.5, 1e-16)
    assert between.dual(0.5) == pytest.approx(0.4375)
    assert between.dual(0.5) < known.dual(0.5)
    assert between.radius(0.2, 0.8) > known.radius(0.2, 0.8)
    rows = Rows(np.array([0, 1]), np.array([0.1, 0.1]), np.array([1, 1]))
    scores = np.array([[1.0, 0.0], [1.0, 0.0]])
    cells = between.cells(scores, 2.0 * scores, rows, 4)
    assert cells.wrong.tolist() == cells.right.tolist() == [1, 1, 1, 1]
    assert cells.errors.tolist() == [1] * 5


def test_a_path_resumed_at_any_step_ends_the_same():
    problem = small(n=60, d=8, k=3)

    def path() -> WholePath:
        return WholePath(make("weston_watkins", {}), eps=0.02, low=LOW, high=1.0)

    steps: Iterator[Step] = path().steps(problem)
    states = [{name: np.array(array) for name, array in step.state.items()} for step in steps]
    expected = path().model(problem, states[-1])
    assert len(states) > 8
    for state in states[:: max(1, len(states) // 6)]:
        last = last_of(path().steps(problem, state))
        model = path().model(problem, last.state)
        assert last.converged
        assert model.record == expected.record
        np.testing.assert_array_equal(model.linear_weights().W, expected.linear_weights().W)


def test_the_model_is_trained_on_all_rows_at_the_chosen_c_and_its_answers_are_bounded():
    problem, path = small(n=90, d=10, k=4), WholePath(make("crammer_singer", {"tol": 1e-6}), low=LOW, high=HIGH)
    steps = list(path.steps(problem))
    last, record = steps[-1], path.model(problem, steps[-1].state).record["path"]
    C = record["chosen"]["C"]
    assert path.chosen(last.state).params.C == C
    alone = last_of(make("crammer_singer", {"tol": 1e-6, "C": C}).steps(problem))
    assert last.primal == pytest.approx(alone.primal, rel=2e-6)
    model = path.model(problem, last.state)
    assert path.reach(problem, last.state, model, last.primal, last.dual) is not None
    fractions = [step.fraction for step in steps]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    with pytest.raises(ValueError, match="has not ended"):
        path.model(problem, steps[0].state)


def test_more_rows_are_trained_on_without_another_path():
    whole, path = small(n=120, d=10, k=4), WholePath(make("weston_watkins", {}), low=LOW, high=HIGH)
    rows = np.where(np.arange(120) < 90, np.arange(120), -1)
    first = Problem.check(whole.X[:90], whole.y[:90])
    last = last_of(path.steps(first))
    again, start = path.on_all_rows(first, last.state, whole, rows)
    steps = list(again.steps(whole, start))
    record = path.model(first, last.state).record
    assert again.model(whole, steps[-1].state).record == record
    alone = last_of(make("weston_watkins", {"C": record["path"]["chosen"]["C"]}).steps(whole))
    assert steps[-1].primal == pytest.approx(alone.primal, rel=0.02)


def test_small_gaps_are_certified_in_double_precision():
    problem, found = small(n=90, d=10, k=4), []
    for dtype in ("auto", "float64"):
        path = WholePath(make("crammer_singer", {"dtype": dtype}), eps=1e-3, low=LOW, high=1.0)
        found.append(path.model(problem, last_of(path.steps(problem)).state).record["path"])
    assert found[0] == found[1]


def test_a_training_that_misses_its_gap_is_tried_again_from_a_nearer_c():
    problem = small(n=90, d=10, k=4)
    solver = make("one_vs_rest", {"max_epochs": 30})
    path = WholePath(solver, eps=0.05, low=1e-3, high=300.0)
    steps = list(path.steps(problem))
    record = path.model(problem, steps[-1].state).record["path"]
    alone = last_of(solver.at(300.0).at_tol(0.015).steps(path.split(problem).problem(problem)))
    assert not alone.converged
    assert record["largest_gap"] <= 0.05


def test_a_classifier_has_the_chosen_c_and_its_path():
    problem = small(n=90, d=10, k=4)
    fitted = PolymarginClassifier("crammer_singer").fit_every_c(problem.X, problem.y, low=LOW, high=HIGH)
    assert fitted.get_params()["C"] == fitted.path_["chosen"]["C"]
    assert fitted.path_["bound"] <= fitted.path_["chosen"]["errors"] == min(fitted.path_["errors"])
    assert fitted.gap_ <= 0.01
    with pytest.raises(TypeError, match="centroids has no gap"):
        PolymarginClassifier("centroids").fit_every_c(problem.X, problem.y)


@pytest.mark.parametrize(("tol", "eps"), [(0.1, 0.02), (0.001, 0.05)])
def test_the_chosen_c_is_solved_to_the_lesser_of_tol_and_eps(tol, eps):
    problem = small(n=90, d=10, k=4)
    classifier = PolymarginClassifier("crammer_singer", tol=tol)
    assert classifier.fit_every_c(problem.X, problem.y, eps=eps, low=LOW, high=HIGH).gap_ <= min(tol, eps)
    path = WholePath(make("crammer_singer", {"tol": tol}), eps=eps, low=LOW, high=HIGH)
    assert path.chosen(last_of(path.steps(problem)).state).params.tol == min(tol, eps)


def test_a_path_needs_rows_to_hold_out():
    problem = Problem.check(sp.csr_matrix(np.eye(3)), np.arange(3))
    with pytest.raises(ProblemError, match="no row can be held out"):
        next(WholePath(make("crammer_singer", {})).steps(problem))
