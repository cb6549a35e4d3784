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
from solvers.numerics.array_types import AnyFloats, Floats32, Ints
from solvers.selection.held_out import MEASURES, Measure, measured
from solvers.selection.later_places import LaterPlaces
from solvers.selection.lighter_weights import lighter
from solvers.selection.pool_model import PoolModel
from solvers.selection.pooling import Pool, cautious, choose_pool, fit_pool, log_softmax, pooled
from solvers.selection.tasks import Choice, Scores
from solvers.selection.temperature_scaling import TemperatureScaling


class Calibrated(NamedTuple):
    """A pool, what follows on its scores, and the logarithms of the probabilities that it has on the rows held out."""

    pool: Pool
    tempering: TemperatureScaling | None
    later: LaterPlaces | None
    said: Floats32


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
        numbers = sorted(scores)
        stack = [scores[number] for number in numbers]
        chosen = self._calibrated(choose_pool(stack, self._y, most), stack)
        values = measured(chosen.said, self._y, chosen.pool.log_loss)
        single = self._calibrated(fit_pool(stack, self._y, (numbers.index(best),)), stack)
        alone = measured(scores[best], self._y, single.pool.log_loss)
        noise = 2.0 * self._noise(alone[measure])
        if most == 1 or alone[measure] > values[measure] + noise:
            chosen, values = single, alone
        pool = chosen.pool._replace(members=tuple(numbers[member] for member in chosen.pool.members))
        tree, reliability = self._problem.taxonomy, Reliability.from_log_probabilities(chosen.said, self._y)
        kept: dict[str, State] = {"reliability": reliability.arrays()}
        if chosen.tempering is not None:
            kept["tempering"] = chosen.tempering.arrays()
        if chosen.later is not None:
            kept["later_places"] = chosen.later.arrays()
        if tree is not None:
            kept["back_off"] = BackOff.from_log_probabilities(
                tree, self._problem.classes, chosen.said, self._y
            ).arrays()
        found = {f"held_out_{name}": value for name, value in values.items()} | {"held_out_log_loss": pool.log_loss}
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

    def _calibrated(self, pool: Pool, stack: Sequence[Scores]) -> Calibrated:
        """A pool that is not too sure.

        One model has one temperature, so that what its features bring to a score is the same in each row.
        """
        members = [stack[member] for member in pool.members]
        whole = pooled(members, pool.coefficients)
        tempering = TemperatureScaling.fit(whole, self._y) if len(members) > 1 else None
        if tempering is None:
            pool = cautious(pool, stack, self._y)
            said = log_softmax(pooled(members, pool.coefficients))
        else:
            said = log_softmax(tempering.apply(whole))
        later = LaterPlaces.fit(said, members, self._y) if len(members) > 1 else None
        if later is not None:
            said = later.apply(said, members)
        if tempering is not None or later is not None:
            pool = pool._replace(log_loss=-float(said[np.arange(len(self._y)), self._y].mean(dtype=np.float64)))
        return Calibrated(pool, tempering, later, said)

    def _noise(self, value: float) -> float:
        """The standard error of a mean of numbers from 0 to 1; of a log loss, nothing."""
        return float(np.sqrt(max(value * (1.0 - value), 0.0) / len(self._y))) if 0.0 <= value <= 1.0 else 0.0
