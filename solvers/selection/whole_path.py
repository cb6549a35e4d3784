"""A method at every C of a range: so few trainings that a model within eps of the optimum is known for each C.

From the smallest C on, each training starts from the solution before it, and the next C is as far away as the bounds
between two solutions are expected to reach (:mod:`solvers.selection.path_bounds`). Where they do not, a C between both
is solved. Rows that are held out say which C has the fewest errors, and the bounds say how few errors the exact optimum
of any C could have at least. What is chosen is trained on all rows.
"""

import math
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from solvers.core.base import Solver, State, Step, relative_gap
from solvers.core.certain_answers import Reach
from solvers.core.dual_variables import DualShares
from solvers.core.model import Model
from solvers.core.problem import Problem, ProblemError
from solvers.numerics.array_types import AnyFloats, Array, Floats, Ints
from solvers.numerics.lazy_arrays import Parts, part_of
from solvers.selection.held_out import MOST_SCORES, Fold, thinned
from solvers.selection.path_bounds import Between, Cells, Classes, OfClasses, Rows, Solved
from solvers.selection.splits import stratified

# of eps, to which each C is solved: what is left is for the way between two of them
SOLVED_TO = 0.3
# from which eps on rounding in single precision would hide much of what the bounds decide, and may keep gaps open
PRECISE_FROM = 2e-3
# ratio of two neighbouring values of C: a solution far from the last one starts from much of what it has to unlearn
MOST_RATIO, LEAST_RATIO = 10.0, 1.002
# how the logarithm of the ratio may change from one step to the next, and at what gap it aims, by eps
MOST_GROWTH, LEAST_SHRINKAGE, AIM = 4.0, 0.3, 0.8
# a training that misses its gap is tried again from a nearer C, unless it began from one as near as this
NEAR = 1.2
N_CELLS = 8
# an estimate of how much of the work is done before the training on all rows
PATH_SHARE = 0.85


@dataclass(eq=False)
class Path:
    """What is known of the path so far: the state of a step.

    Attributes
    ----------
    solved : list of Solved
        In the order in which they were solved.
    epochs : list of int
        Of each.
    missed : int
        Epochs of trainings that have missed their gap, and are left out.
    gaps : list of float
        The largest relative gap between each two neighbours up to ``left``, ascending in C.
    cells : list of Cells
        Of the same.
    left : int
        The place in ``solved`` up to which the path is certified; -1 at the beginning.
    ahead : list of int
        Places of solutions beyond, the nearest last.
    states : dict of int to mapping
        The last states of ``left``, of those ``ahead`` and of the ``best``, by their places.
    target, ratio : float
        The C under way, and the ratio of the last step of the path.
    weight : float
        Of all rows that the path is trained on.
    """

    solved: list[Solved] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    missed: int = 0
    gaps: list[float] = field(default_factory=list)
    cells: list[Cells] = field(default_factory=list)
    left: int = -1
    ahead: list[int] = field(default_factory=list)
    states: dict[int, State] = field(default_factory=dict)
    target: float = math.nan
    ratio: float = MOST_RATIO
    best: "Best | None" = None
    n_held_out: int = 0
    weight: float = 1.0
    ended: bool = False

    @property
    def n_epochs(self) -> int:
        """Of all trainings that have ended."""
        return sum(self.epochs) + self.missed

    def state(self, inner: State | None = None) -> State:
        """As arrays; ``inner`` is the state of the training under way."""
        now = {
            "solved": np.array(self.solved, np.float64).reshape(-1, len(Solved._fields)),
            "epochs": np.array([self.missed, *self.epochs], np.int64),
            "gaps": np.array(self.gaps, np.float64),
            "edges": np.array([cells.edges for cells in self.cells]),
            "counts": np.array([(cells.wrong, cells.right) for cells in self.cells], np.int64),
            "errors": np.array([cells.errors for cells in self.cells], np.int64),
            "places": np.array([self.left, *self.ahead], np.int64),
            "under_way": np.array([self.target, self.ratio, self.n_held_out, self.weight, float(self.ended)]),
            "best": np.array([] if self.best is None else self.best, np.float64),
        }
        states = {f"solution{place}": state for place, state in self.states.items()}
        return Parts({"path": now, "inner": inner or {}, **states})

    @classmethod
    def resumed(cls, state: State) -> "tuple[Path, State | None]":
        """What :meth:`state` has written."""
        now, names = part_of(state, "path"), {name.partition(".")[0] for name in state}
        found = cls([Solved(*row) for row in now["solved"].tolist()], now["epochs"][1:].tolist(), int(now["epochs"][0]))
        found.gaps = now["gaps"].tolist()
        found.cells = [
            Cells(edges, wrong, right, errors)
            for edges, (wrong, right), errors in zip(now["edges"], now["counts"], now["errors"], strict=True)
        ]
        found.left, *found.ahead = now["places"].tolist()
        found.target, found.ratio = now["under_way"][:2].tolist()
        found.n_held_out, found.weight = int(now["under_way"][2]), float(now["under_way"][3])
        found.ended = bool(now["under_way"][4])
        if len(now["best"]):
            C, errors, place = now["best"].tolist()
            found.best = Best(C, int(errors), int(place))
        found.states = {int(name[8:]): part_of(state, name) for name in names if name.startswith("solution")}
        return found, part_of(state, "inner") or None

    def keep_states(self) -> None:
        """Forget the states that nothing begins from any more."""
        kept = {self.left, *self.ahead, *([] if self.best is None else [self.best.place])}
        self.states = {place: state for place, state in self.states.items() if place in kept}


class Best(NamedTuple):
    """The C with the fewest errors on held-out rows, the smallest of them, and the place of a solution near to it."""

    C: float
    errors: int
    place: int


class Solution(NamedTuple):
    """A solution's weights, its scores of the held-out rows, and what is known of each class for itself."""

    weights: list[Any]
    scores: AnyFloats
    classes: OfClasses | None


class WholePath(Solver[Any]):
    """A solver at every C of a range; what it trains on all rows has the C with the fewest errors on held-out ones.

    Its states are those of the path, with that of the training under way.

    Parameters
    ----------
    solver : Solver
        With ``bounds_answers`` and ``has_path``; its C does not matter.
    eps : float
        The relative duality gap that is certified at every C, and on all rows at the chosen one.
    low, high : float
        The range of C.
    fraction : float
        Of the rows, by class, that are held out along the path.
    """

    name = "whole_path"
    chooses = True
    bounds_answers = True

    def __init__(
        self,
        solver: Solver[Any],
        *,
        eps: float = 0.01,
        low: float = 1e-4,
        high: float = 1e4,
        fraction: float = 0.2,
    ) -> None:
        super().__init__(solver.params, seed=solver.seed, threads=solver.threads)
        self.handles = solver.handles  # type: ignore[misc]
        self._solver, self._eps, self._low, self._high, self._fraction = solver, eps, low, high, fraction

    def steps(self, problem: Problem, state: State | None = None) -> Iterator[Step]:
        """Solve along the path, then train on all rows; the last step has the certificate.

        Raises
        ------
        ProblemError
            No row can be held out, as no class has two; or as the method has it.
        """
        path, inner = (Path(target=self._low), None) if state is None else Path.resumed(state)
        if not path.ended:
            yield from self._follow(path, problem, inner)
            inner = None
        assert path.best is not None
        if inner is None and path.best.place in path.states:
            inner = self._start(path, self.split(problem), problem)
        solver, done = self._chosen(path), path.n_epochs
        for step in solver.steps(problem, inner):
            within = step.fraction if math.isfinite(step.fraction) else 0.0
            share = 1.0 if step.converged else PATH_SHARE + (1.0 - PATH_SHARE) * within
            state = path.state(step.state)
            yield replace(step, epoch=done + step.epoch, state=state, setting=_setting(path.best.C), fraction=share)

    def model(self, problem: Problem, state: State) -> Model:
        """The model on all rows, with the path as its record; raises ValueError before that has a step."""
        path, inner = Path.resumed(state)
        if path.best is None or not path.ended or inner is None:
            raise ValueError("the path has not ended, so there is no model yet")
        model = self._chosen(path).model(problem, inner)
        model.record = {**model.record, "path": self._record(path)}
        return model

    def reach(self, problem: Problem, state: State, model: Model, primal: float, dual: float) -> Reach | None:
        path, inner = Path.resumed(state)
        assert inner is not None
        return self._chosen(path).reach(problem, inner, model, primal, dual)

    def on_all_rows(
        self, former: Problem, state: State, problem: Problem, rows: Ints
    ) -> "tuple[Solver[Any], State | None]":
        """The path is not followed again: only what it has chosen is trained on the problem."""
        path, inner = Path.resumed(state)
        assert inner is not None
        _, start = self._chosen(path).on_all_rows(former, inner, problem, rows)
        path.states = {}
        return self, path.state(start)

    def chosen(self, state: State) -> Self:
        """The same with the C that a path which has ended has chosen."""
        path, _ = Path.resumed(state)
        other = copy(self)
        other.params = self._chosen(path).params
        return other

    def dual_shares(self, problem: Problem, state: State) -> sp.csr_matrix:
        path, inner = Path.resumed(state)
        assert inner is not None
        return self._chosen(path).dual_shares(problem, inner)

    def split(self, problem: Problem) -> Fold:
        """The rows that the path is trained on, and those that are held out."""
        self._solver.admit(problem)
        out = stratified(problem.y, self._fraction, self.seed)
        if not out.any():
            raise ProblemError(
                f"no row can be held out of {problem.n_samples}: choosing C needs a class with several rows"
            )
        held_out = thinned(np.flatnonzero(out), MOST_SCORES // problem.n_classes, self.seed)
        return Fold(np.flatnonzero(~out), held_out)

    def _follow(self, path: Path, problem: Problem, inner: State | None) -> Iterator[Step]:
        """Solve one C after the other, until all bounds between them hold."""
        fold = self.split(problem)
        part, X = fold.problem(problem), sp.csr_matrix(problem.X[fold.held_out])
        known = np.bincount(part.X.indices, minlength=part.n_features) > 0
        squares = X.multiply(X).multiply(known[None, :]).sum(axis=1)
        bias = self._solver.params.bias
        lengths = np.sqrt(np.asarray(squares, np.float64).ravel() + bias**2)
        path.n_held_out, path.weight = len(fold.held_out), float(part.weights.sum())
        rows = Rows(problem.y[fold.held_out], lengths, np.diff(X.indptr) + 1)
        solutions: dict[int, Solution] = {}

        def solution(place: int) -> Solution:
            if place not in solutions:
                solver, state = self._at(path.solved[place].C), path.states[place]
                model = solver.bare_model(part, state)
                weights, bounds = _weights(model, bias), solver.bounds_of_classes(part, state)
                knows_dual = solver.multiple(part, state) is not None
                classes = None if bounds is None else OfClasses(*bounds, products(weights, weights), knows_dual)
                solutions[place] = Solution(weights, model.scores(X), classes)
            return solutions[place]

        while not path.ended:
            yield from self._solve(path, part, inner)
            inner, place = None, len(path.solved) - 1
            if self._missed(path):
                self._step_back(path)
                yield self._solved_step(path)
                continue
            path.solved[place] = path.solved[place]._replace(square=inner_product(*[solution(place).weights] * 2))
            if path.left < 0:
                path.left = place
                path.ahead.pop()
            self._connect(path, solution, rows)
            path.keep_states()
            solutions = {each: found for each, found in solutions.items() if each in path.states}
            yield self._solved_step(path)

    def _solve(self, path: Path, part: Problem, inner: State | None) -> Iterator[Step]:
        """Train at the path's target, from the solution before it, and put what is found ahead."""
        solver, start, last = self._at(path.target), inner, None
        if start is None and path.left >= 0:
            start = solver.rescaled(part, path.states[path.left], path.solved[path.left].C)
        done, share = path.n_epochs, PATH_SHARE * self._done(path)
        for last in solver.steps(part, start):
            if last.converged:
                break
            nothing = math.nan, math.nan
            state, setting = path.state(last.state), _setting(path.target)
            yield Step(done + last.epoch, *nothing, last.violation, False, state, {}, setting, fraction=share)
        assert last is not None
        if math.isnan(relative_gap(last.primal, last.dual)):
            raise ProblemError(f"training at C = {path.target:g} has ended without a certificate: raise max_epochs")
        place = len(path.solved)
        path.states[place] = {name: np.asarray(last.state[name]) for name in last.state}
        multiple = solver.multiple(part, last.state)
        path.solved.append(Solved(path.target, last.primal, last.dual, 0.0, math.nan if multiple is None else multiple))
        path.epochs.append(last.epoch)
        path.ahead.append(place)

    def _missed(self, path: Path) -> bool:
        """Whether the last training has missed its gap, and another one could begin nearer."""
        last = path.solved[-1]
        near = path.left < 0 or last.C <= NEAR * path.solved[path.left].C
        return not near and relative_gap(last.primal, last.dual) > SOLVED_TO * self._eps

    def _step_back(self, path: Path) -> None:
        """Leave the last solution out, and go half of the way to it."""
        del path.states[path.ahead.pop()]
        low, high = path.solved[path.left].C, path.solved.pop().C
        path.missed += path.epochs.pop()
        path.target = math.sqrt(low * high)

    def _connect(self, path: Path, solution: Callable[[int], Solution], rows: Rows) -> None:
        """Certify up to the nearest solution ahead, as long as bounds hold; then decide which C is next."""
        while path.ahead:
            place = path.ahead[-1]
            low, high = path.solved[path.left], path.solved[place]
            here, there = solution(path.left), solution(place)
            between = self.between(low, high, here, there)
            gap, ratio = between.largest_gap, high.C / low.C
            ends = max(relative_gap(each.primal, each.dual) for each in (low, high))
            # the way between two solutions takes a share of the gap that grows with the square of their distance
            wished = math.sqrt(max(AIM * self._eps - ends, 0.1 * self._eps) / max(gap - ends, 1e-3 * self._eps))
            if gap > self._eps and ratio > LEAST_RATIO:
                path.target = low.C * ratio ** min(max(wished, LEAST_SHRINKAGE), 0.7)
                return
            path.gaps.append(gap)
            cells = between.cells(here.scores, there.scores, rows, N_CELLS, self.classes(between, here, there))
            path.cells.append(cells)
            least = int(cells.errors.argmin())
            if path.best is None or cells.errors[least] < path.best.errors:
                nearest = path.left if cells.edges[least] ** 2 < low.C * high.C else place
                path.best = Best(float(cells.edges[least]), int(cells.errors[least]), nearest)
            path.left = place
            path.ratio = min(MOST_RATIO, ratio ** min(max(wished, LEAST_SHRINKAGE), MOST_GROWTH))
            path.ahead.pop()
        C = path.solved[path.left].C
        path.ended = self._high <= C
        path.target = min(C * max(path.ratio, LEAST_RATIO), self._high)
        if path.target * math.sqrt(path.ratio) > self._high:
            path.target = self._high

    def _solved_step(self, path: Path) -> Step:
        """The step after a solution."""
        last, nothing = path.solved[-1], (math.nan,) * 3
        measures = {"C": last.C, "models": float(len(path.solved))}
        if path.best is not None:
            measures |= {"held_out_errors": float(path.best.errors)}
        done, setting = PATH_SHARE * self._done(path), _setting(last.C)
        return Step(path.n_epochs, *nothing, False, path.state(), measures, setting, fraction=done, milestone=True)

    def between(self, low: Solved, high: Solved, here: Solution, there: Solution) -> Between:
        """The bounds between two solutions."""
        precision = float(np.finfo(here.scores.dtype).eps)
        return Between(low, high, inner_product(here.weights, there.weights), precision)

    def classes(self, between: Between, here: Solution, there: Solution) -> Classes | None:
        """The bounds of each class, where the problem is a sum of one for each."""
        if here.classes is None or there.classes is None:
            return None
        return Classes(here.classes, there.classes, products(here.weights, there.weights), between.precision)

    def _done(self, path: Path) -> float:
        if path.left < 0:
            return 0.0
        return math.log(path.solved[path.left].C / self._low) / math.log(self._high / self._low)

    def _at(self, C: float) -> Solver[Any]:
        solver = self._solver.at(C).at_tol(SOLVED_TO * self._eps)
        if self._eps <= PRECISE_FROM and getattr(solver.params, "dtype", None) == "auto":
            solver.params = solver.params.model_copy(update={"dtype": "float64"})
        return solver

    def _chosen(self, path: Path) -> Solver[Any]:
        """The method at the chosen C, trained to its tol or to eps, whichever is less."""
        assert path.best is not None
        return self._solver.at(path.best.C).at_tol(min(self._solver.params.tol, self._eps))

    def _start(self, path: Path, fold: Fold, problem: Problem) -> State | None:
        """What the training on all rows begins from."""
        assert path.best is not None
        solver, place = self._chosen(path), path.best.place
        if not solver.starts_warm:
            return None
        part, rows = fold.problem(problem), np.full(problem.n_samples, -1)
        rows[fold.train] = np.arange(len(fold.train))
        try:
            shares = self._at(path.solved[place].C).dual_shares(part, path.states[place])
            return solver.warm(problem, DualShares(shares, part.y, tuple(part.classes)).onto(problem, rows))
        except ProblemError:  # such weights cannot be made from dual variables
            return None

    def _record(self, path: Path) -> dict[str, Any]:
        """The path as a picture has it; all lists ascend in C."""
        assert path.best is not None
        order = np.argsort([each.C for each in path.solved])
        least = np.concatenate([cells.wrong for cells in path.cells])
        edges = _joined([cells.edges for cells in path.cells])
        points = [
            {
                "C": path.solved[place].C,
                "primal": path.solved[place].primal,
                "dual": path.solved[place].dual,
                "loss": path.solved[place].losses / path.weight,
                "epochs": path.epochs[place],
            }
            for place in order.tolist()
        ]
        return {
            "eps": self._eps,
            "largest_gap": max(path.gaps),
            "models": points,
            "gaps": path.gaps,
            "edges": edges.tolist(),
            "errors": _joined([cells.errors for cells in path.cells]).tolist(),
            "least_errors": least.tolist(),
            "most_errors": (path.n_held_out - np.concatenate([cells.right for cells in path.cells])).tolist(),
            "n_held_out": path.n_held_out,
            "bound": int(least.min()),
            "excluded": float(np.diff(np.log(edges))[least >= path.best.errors].sum() / np.log(edges[-1] / edges[0])),
            "chosen": {"C": path.best.C, "errors": path.best.errors},
        }


def inner_product(these: list[Any], those: list[Any]) -> float:
    """The inner product of two models' weights, as :func:`_weights` has them."""
    return float(products(these, those).sum())


def products(these: list[Any], those: list[Any]) -> Floats:
    """The inner products of two models' weights, of each class: float64 array, shape (n_classes,)."""
    total: Any = 0.0
    for a, b in zip(these, those, strict=True):
        if sp.issparse(a) or sp.issparse(b):
            both = sp.csr_matrix(a, dtype=np.float64).multiply(sp.csr_matrix(b, dtype=np.float64))
            total = total + np.asarray(both.sum(axis=0), np.float64).ravel()
        else:
            total = total + np.einsum("ic,ic->c", np.atleast_2d(a), np.atleast_2d(b), dtype=np.float64)
    return np.asarray(total)


def _weights(model: Model, bias: float) -> list[Any]:
    """All weights of a linear model, those of a constant feature of this value included."""
    weights = model.linear_weights()
    assert weights is not None
    W = weights.W
    if isinstance(W, sp.csr_matrix):
        # its rows are those of the features that have weights, which another C may not have
        entries = W.tocoo()
        at = weights.features[entries.row], entries.col
        W = sp.csr_matrix((entries.data, at), shape=(model.n_features, entries.shape[1]))
    found = [W]
    if weights.intercept is not None and bias > 0:
        found.append(weights.intercept.astype(np.float64) / bias)
    return found


def _joined(pieces: list[Array]) -> Array:
    """Edges of ranges that follow one another, each once."""
    return np.concatenate([pieces[0][:1], *(piece[1:] for piece in pieces)])


def _setting(C: float) -> str:
    return f"C = {C:.3g}"
