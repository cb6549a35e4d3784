"""What a search measures, chooses and makes of one label an example."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from solvers.core.base import Solver, State
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.metrics.confidence.back_off import BackOff
from solvers.metrics.confidence.reliability import Reliability
from solvers.numerics.array_types import AnyFloats, Bools, Floats32, Ints, Ints32
from solvers.selection.held_out import MEASURES, Measure, measured
from solvers.selection.later_places import LaterPlaces
from solvers.selection.lighter_weights import lighter
from solvers.selection.pool_model import PoolModel
from solvers.selection.pooling import Pool, cautious, choose_pool, fit_pool, log_softmax, pooled
from solvers.selection.tasks import Choice, Scores
from solvers.selection.temperature_scaling import TemperatureScaling
from solvers.selection.unseen_labels import sure_factor, with_unseen

# rows held out, of fewer of which the parts say too little of a calibration
FEWEST_ROWS = 20
# of so many rows halves are enough; of fewer there are up to MOST_PARTS: without its errors a part looks quite sure
MANY_ROWS, MOST_PARTS = 2000, 10


class Calibrated(NamedTuple):
    """A pool, and what follows on its scores."""

    pool: Pool
    tempering: TemperatureScaling | None
    later: LaterPlaces | None

    @classmethod
    def fit(cls, pool: Pool, stack: Sequence[Scores], y: Ints32) -> "Calibrated":
        """A pool that is not too sure.

        One model has one temperature, so that what its features bring to a score is the same in each row.
        """
        members = [stack[member] for member in pool.members]
        tempering = TemperatureScaling.fit(pooled(members, pool.coefficients), y) if len(members) > 1 else None
        found = cls(cautious(pool, stack, y) if tempering is None else pool, tempering, None)
        if len(members) > 1:
            found = found._replace(later=LaterPlaces.fit(found.apply(stack), members, y))
        return found

    def apply(self, stack: Sequence[Scores]) -> Floats32:
        """The logarithms of probabilities, float32, shape (n_rows, n_classes)."""
        members = [stack[member] for member in self.pool.members]
        whole = pooled(members, self.pool.coefficients)
        said = log_softmax(whole if self.tempering is None else self.tempering.apply(whole))
        return said if self.later is None else self.later.apply(said, members)

    def times(self, factor: float) -> "Calibrated":
        """The scores of the first place times a factor."""
        if self.tempering is None:
            return self._replace(pool=self.pool._replace(coefficients=factor * self.pool.coefficients))
        return self._replace(tempering=self.tempering._replace(scale=self.tempering.scale + float(np.log(factor))))

    def of_others(self, y: Ints32, stack: Sequence[Scores]) -> "list[tuple[Bools, Calibrated]]":
        """Rows, and a calibration that is fitted to all others: by halves, or by more parts where rows are few."""
        if len(y) < FEWEST_ROWS:
            return [(np.ones(len(y), bool), self)]
        found = []
        n_parts = min(max(MANY_ROWS // len(y), 2), MOST_PARTS)
        for part in range(n_parts):
            fitted_to = np.arange(len(y)) % n_parts != part
            some, y_some = [scores[fitted_to] for scores in stack], y[fitted_to]
            found.append((~fitted_to, Calibrated.fit(fit_pool(some, y_some, self.pool.members), some, y_some)))
        return found


class SingleLabels:
    """One label an example: a log-linear pool."""

    measures: tuple[Measure, ...] = MEASURES

    def __init__(self, problem: Problem, rows: Ints) -> None:
        self._problem, self._y = problem, problem.y[rows]

    def member(self, solver: Solver[Any], problem: Problem, state: State) -> Model:
        return lighter(solver.bare_model(problem, state), problem.X)

    def scores(self, model: Model, X: sp.csr_matrix, fold: int) -> AnyFloats:
        return model.scores(X)

    def n_scores(self, n_rows: int) -> int:
        return n_rows * self._problem.n_classes

    def measured(self, scores: Scores) -> list[float]:
        found = measured(scores, self._y)
        return [found[name] for name in MEASURES]

    def choose(self, scores: Mapping[int, Scores], best: int, measure: Measure, most: int) -> Choice:
        """The pool of the least log loss; a single model instead if it is better by more than two standard errors."""
        numbers, y = sorted(scores), self._y
        stack = [scores[number] for number in numbers]
        chosen = Calibrated.fit(choose_pool(stack, y, most), stack, y)
        said = chosen.apply(stack)
        values = measured(said, y, _log_loss(said, y))
        single = Calibrated.fit(fit_pool(stack, y, (numbers.index(best),)), stack, y)
        alone = measured(scores[best], y, _log_loss(single.apply(stack), y))
        noise = 2.0 * self._noise(alone[measure])
        if most == 1 or alone[measure] > values[measure] + noise:
            chosen, values = single, alone
        # what answers are worth is known from rows that nothing was fitted to, and from rows of labels to come
        others, counts = chosen.of_others(y, stack), np.bincount(self._problem.y, minlength=self._problem.n_classes)
        to_come, y_to_come = with_unseen(_said(others, stack), y, counts)
        if len(y_to_come) > len(y):
            factor = sure_factor(to_come, y_to_come)
            chosen, others = chosen.times(factor), [(rows, fitted.times(factor)) for rows, fitted in others]
            to_come, y_to_come = with_unseen(_said(others, stack), y, counts)
        log_loss = _log_loss(chosen.apply(stack), y)
        pool = Pool(tuple(numbers[member] for member in chosen.pool.members), chosen.pool.coefficients, log_loss)
        tree, reliability = self._problem.taxonomy, Reliability.from_log_probabilities(to_come, y_to_come)
        kept: dict[str, State] = {"reliability": reliability.arrays()}
        if chosen.tempering is not None:
            kept["tempering"] = chosen.tempering.arrays()
        if chosen.later is not None:
            kept["later_places"] = chosen.later.arrays()
        if tree is not None:
            levels = BackOff.from_log_probabilities(tree, self._problem.classes, to_come, y_to_come)
            kept["back_off"] = levels.arrays()
        found = {f"held_out_{name}": value for name, value in values.items()} | {"held_out_log_loss": log_loss}
        found["held_out_calibration_error"] = reliability.calibration_error()
        return Choice(pool, found, kept)

    def model(self, members: Sequence[Model], pool: Pool, kept: Mapping[str, State]) -> Model:
        held_out, levels, tempering = (kept.get(name) for name in ("reliability", "back_off", "tempering"))
        later = kept.get("later_places")
        return PoolModel(
            members,
            pool.coefficients,
            Reliability.from_arrays(held_out) if held_out else None,
            BackOff.from_arrays(levels) if levels else None,
            TemperatureScaling.from_arrays(tempering) if tempering else None,
            LaterPlaces.from_arrays(later, len(members)) if later else None,
        )

    def _noise(self, value: float) -> float:
        """The standard error of a mean of numbers from 0 to 1; of a log loss, nothing."""
        return float(np.sqrt(max(value * (1.0 - value), 0.0) / len(self._y))) if 0.0 <= value <= 1.0 else 0.0


def _said(others: Sequence[tuple[Bools, Calibrated]], stack: Sequence[Scores]) -> Floats32:
    """Logarithms of probabilities of all rows, those of each part by its own calibration."""
    said = np.empty(stack[0].shape, np.float32)
    for rows, fitted in others:
        said[rows] = fitted.apply([scores[rows] for scores in stack])
    return said


def _log_loss(said: Floats32, y: Ints32) -> float:
    return -float(said[np.arange(len(y)), y].mean(dtype=np.float64))
