"""Rounds of a continuous code: machines are trained, a code is designed for them, and the best round is kept."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from solvers.core.base import State, Step
from solvers.core.problem import Problem
from solvers.numerics.array_types import Array, Floats
from solvers.output_codes.codes import Code
from solvers.output_codes.columns.models import ColumnModels
from solvers.output_codes.design.task import part_of

# entries of a designed column so much smaller than its largest take no side when its machine is trained again
NO_SIDE = 1e-6
NUMBERS = ("primal", "dual", "converged")


@dataclass(eq=False)
class Round:
    """Machines and design of one round, as far as they have come."""

    machines: ColumnModels | None = None
    design: State | None = None
    primal: float = np.inf
    dual: float = np.nan
    converged: bool = False

    def note(self, step: Step) -> None:
        """Store the state of the design."""
        self.design, self.converged = step.state, step.converged
        if not np.isnan(step.primal):
            self.primal, self.dual = step.primal, step.dual

    def state(self, prefix: str) -> dict[str, Array]:
        held: dict[str, Array] = {name: np.array(getattr(self, name)) for name in NUMBERS}
        if self.machines is not None:
            held |= {f"machines_{name}": array for name, array in self.machines.arrays().items()}
        if self.design is not None:
            held |= {f"design_{name}": array for name, array in self.design.items()}
        return {f"{prefix}{name}": array for name, array in held.items()}

    @classmethod
    def resume(cls, n_features: int, prefix: str, state: State) -> "Round":
        held, design = part_of(state, f"{prefix}machines_"), part_of(state, f"{prefix}design_")
        machines = ColumnModels.from_arrays(n_features, held) if held else None
        return cls(machines, design or None, *(state[f"{prefix}{name}"].item() for name in NUMBERS))


@dataclass(eq=False)
class DesignRun:
    """What changes while training: the state of a step.

    Attributes
    ----------
    round, epoch : int
        Rounds that are over, and the largest epoch of a part.
    signs : int8 array, shape (n_classes, n_columns)
        The code that the machines of this round are trained for.
    confidence : float64 array, shape (n_classes, n_columns), optional
        Weights of the classes in each column; none in the first round.
    objectives : float64 array, shape (round,)
    columns : mapping, optional
        State of the machines while they are trained.
    """

    round: int
    epoch: int
    signs: Code
    confidence: Floats | None
    objectives: Floats
    columns: State | None
    now: Round
    best: Round

    @classmethod
    def begin(cls, signs: Code) -> "DesignRun":
        return cls(0, 0, signs, None, np.empty(0), None, Round(), Round())

    @classmethod
    def resume(cls, n_features: int, state: State) -> "DesignRun":
        now, best = (Round.resume(n_features, prefix, state) for prefix in ("now_", "best_"))
        confidence = np.array(state["confidence"]) if "confidence" in state else None
        columns = part_of(state, "columns_") or None
        signs, objectives = np.array(state["signs"]), np.array(state["objectives"])
        return cls(int(state["round"]), int(state["epoch"]), signs, confidence, objectives, columns, now, best)

    def state(self) -> dict[str, Array]:
        held = {
            "round": np.array(self.round),
            "epoch": np.array(self.epoch),
            "signs": self.signs,
            "objectives": self.objectives,
        }
        if self.confidence is not None:
            held["confidence"] = self.confidence
        if self.columns is not None:
            held |= {f"columns_{name}": array for name, array in self.columns.items()}
        return held | self.now.state("now_") | self.best.state("best_")

    @property
    def kept(self) -> Round:
        """The round whose model is handed out."""
        return self.now if self.best.design is None else self.best

    def step(self, inner: Step, measures: Mapping[str, float], *, measured: bool, converged: bool = False) -> Step:
        """A step of the machines or of the design as one of the whole; only the design's values are the whole's."""
        self.epoch = max(self.epoch, inner.epoch)
        primal, dual = (inner.primal, inner.dual) if measured else (np.nan, np.nan)
        measures = {**measures, **inner.measures}
        return Step(self.epoch, primal, dual, inner.violation, converged, self.state(), measures)

    def close(self, signs: Code, confidence: Floats) -> None:
        """End a round: keep it if it is the best, and set out for the next with new sides of the columns."""
        self.objectives = np.append(self.objectives, self.now.primal)
        if self.now.primal < self.best.primal:
            self.best = self.now
        self.now, self.signs, self.confidence = Round(), signs, confidence
        self.round += 1

    def closing_step(self, *, done: bool) -> Step:
        """The step between two rounds, with the values of the best so far; converged once all rounds are over."""
        measures = {"round": float(self.round), "objective": float(self.objectives[-1])}
        return Step(
            self.epoch, self.best.primal, self.best.dual, np.nan, done and self.best.converged, self.state(), measures
        )


def sides(problem: Problem, M: Floats, signs: Code, confidence: Floats | None) -> tuple[Code, Floats]:
    """The binary problems of a code: on which side each class is, and with what weight.

    A constant added to a column changes no difference of scores, so that sides are those of the centred column. Of a
    column without two sides the former ones stay. Weights have the mean 1 over the examples that take part.
    """
    centred = M - M.mean(axis=0)
    sizes = np.abs(centred)
    fresh = np.where(sizes > NO_SIDE * sizes.max(axis=0), np.sign(centred), 0).astype(np.int8)
    dead = ~((fresh > 0).any(axis=0) & (fresh < 0).any(axis=0))
    fresh[:, dead] = signs[:, dead]
    sizes[:, dead] = 1.0 if confidence is None else confidence[:, dead]
    counts = np.bincount(problem.y, problem.weights, problem.n_classes)[:, None] * (fresh != 0)
    return fresh, np.where(fresh != 0, sizes * counts.sum(axis=0) / (counts * sizes).sum(axis=0), 1.0)
