"""What a search measures, chooses and makes: of one label an example, and of sets of labels."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.core.base import State
from solvers.core.model import Floats, Model
from solvers.core.problem import Problem
from solvers.metrics.confidence.back_off import BackOff
from solvers.metrics.confidence.reliability import Reliability
from solvers.selection.held_out import MEASURES, SET_MEASURES, Fold, Measure, measured
from solvers.selection.node_calibration import Curve, NodeCalibration, log_loss
from solvers.selection.pool_model import PoolModel, log_softmax
from solvers.selection.pooling import Pool, choose_pool, fit_pool, pooled
from solvers.selection.set_model import SetPoolModel, node_scores

Scores = NDArray[np.float32]


class Choice(NamedTuple):
    """What a search has chosen.

    Attributes
    ----------
    pool : Pool
        Its members are trials' numbers.
    found : dict of str to float
        Measures on the held-out rows, for the report.
    kept : dict of str to State
        What the model needs besides its members, by the names of ``Task.kept``.
    """

    pool: Pool
    found: dict[str, float]
    kept: dict[str, State]


class Task(Protocol):
    """How the labels of a problem are scored, measured and predicted.

    Attributes
    ----------
    measures : tuple of str
        More of each is better; the last one is the negative log loss.
    """

    measures: tuple[Measure, ...]

    def scores(self, model: Model, X: sp.csr_matrix) -> Floats:
        """Of rows held out, as they are to be kept: shape (n_rows, n_columns)."""

    def measured(self, scores: Scores) -> list[float]:
        """The measures of the scores of all rows held out, in the order of the folds."""

    def choose(self, scores: Mapping[int, Scores], best: int, measure: Measure, most: int) -> Choice:
        """Choose among trials, by their numbers; ``best`` is the best one alone by the measure."""

    def model(self, members: Sequence[Model], pool: Pool, kept: Mapping[str, State]) -> Model:
        """The model of members that are trained on all rows."""


def task_of(problem: Problem, folds: Sequence[Fold]) -> Task:
    """The task of a problem and the rows held out of it."""
    rows = np.concatenate([np.empty(0, np.int64), *(fold.held_out for fold in folds)])
    return SingleLabels(problem, rows) if problem.labels is None else LabelSets(problem, rows)


class SingleLabels:
    """One label an example: a log-linear pool."""

    measures: tuple[Measure, ...] = MEASURES

    def __init__(self, problem: Problem, rows: NDArray[np.int64]) -> None:
        self._problem, self._y = problem, problem.y[rows]

    def scores(self, model: Model, X: sp.csr_matrix) -> Floats:
        return model.scores(X)

    def measured(self, scores: Scores) -> list[float]:
        found = measured(scores, self._y)
        return [found[name] for name in MEASURES]

    def choose(self, scores: Mapping[int, Scores], best: int, measure: Measure, most: int) -> Choice:
        """The pool of the least log loss; a single model instead if it is better by more than two standard errors."""
        numbers = sorted(scores)
        stack = [scores[number] for number in numbers]
        pool = choose_pool(stack, self._y, most)
        whole = pooled([stack[member] for member in pool.members], pool.coefficients)
        values = measured(whole, self._y, pool.log_loss)
        single = fit_pool(stack, self._y, (numbers.index(best),))
        alone = measured(scores[best], self._y, single.log_loss)
        noise = 2.0 * self._noise(alone[measure])
        if len(pool.members) == 1 or most == 1 or alone[measure] > values[measure] + noise:
            pool, values = single, alone
            whole = pooled([scores[best]], pool.coefficients)
        pool = pool._replace(members=tuple(numbers[member] for member in pool.members))
        said, tree = log_softmax(whole), self._problem.taxonomy
        reliability = Reliability.of(said, self._y)
        kept: dict[str, State] = {"reliability": reliability.arrays()}
        if tree is not None:
            kept["back_off"] = BackOff.of(tree, self._problem.classes, said, self._y).arrays()
        found = {f"held_out_{name}": value for name, value in values.items()} | {"held_out_log_loss": pool.log_loss}
        found["held_out_calibration_error"] = reliability.calibration_error()
        return Choice(pool, found, kept)

    def model(self, members: Sequence[Model], pool: Pool, kept: Mapping[str, State]) -> Model:
        held_out, levels = kept.get("reliability"), kept.get("back_off")
        return PoolModel(
            members,
            pool.coefficients,
            Reliability.from_arrays(held_out) if held_out else None,
            BackOff.from_arrays(levels) if levels else None,
        )

    def _noise(self, value: float) -> float:
        """The standard error of a mean of numbers from 0 to 1; of a log loss, nothing."""
        return float(np.sqrt(max(value * (1.0 - value), 0.0) / len(self._y))) if 0.0 <= value <= 1.0 else 0.0


class LabelSets:
    """Sets of labels: one model, a sigmoid for each node, and one threshold for all."""

    measures: tuple[Measure, ...] = SET_MEASURES

    def __init__(self, problem: Problem, rows: NDArray[np.int64]) -> None:
        assert problem.labels is not None
        self._tree, self._labels = problem.tree, problem.labels[rows]

    def scores(self, model: Model, X: sp.csr_matrix) -> Floats:
        return node_scores(model, X)

    def measured(self, scores: Scores) -> list[float]:
        return self._calibrated(scores)[1]

    def choose(self, scores: Mapping[int, Scores], best: int, measure: Measure, most: int) -> Choice:
        calibration, values = self._calibrated(scores[best])
        found = {f"held_out_{name}": value for name, value in zip(self.measures, values, strict=True)}
        found["held_out_log_loss"] *= -1.0
        pool = Pool((best,), np.ones(1), found["held_out_log_loss"])
        return Choice(pool, found, {"calibration": calibration.arrays()})

    def model(self, members: Sequence[Model], pool: Pool, kept: Mapping[str, State]) -> Model:
        fitted = kept.get("calibration")
        none = NodeCalibration.none(self._tree.n_nodes)
        return SetPoolModel(self._tree, members[0], NodeCalibration.from_arrays(fitted) if fitted else none)

    def _calibrated(self, scores: Scores) -> tuple[NodeCalibration, list[float]]:
        calibration = NodeCalibration.fit(scores, self._labels)
        log_odds = calibration.log_odds(scores, self._tree.parent)
        curve = Curve.of(log_odds, self._labels)
        loss = log_loss(log_odds, self._labels)
        return calibration._replace(threshold=curve.threshold), [curve.micro_f1, curve.average_precision, -loss]
