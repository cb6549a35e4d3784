"""The state of a search: what it has found so far, as arrays from which it goes on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from solvers.core.base import State, relative_gap
from solvers.numerics.array_types import Floats
from solvers.numerics.lazy_arrays import Parts, part_of
from solvers.selection.pooling import Pool
from solvers.selection.tasks import Scores

# what a model needs besides its members
KEPT = ("reliability", "back_off", "tempering", "later_places", "calibration", "set_reliability")


class Outcome(NamedTuple):
    """How the training of a member has ended.

    Attributes
    ----------
    primal, dual : float
        nan of methods without a certificate.
    closed_form : bool
        The solution is exact but for rounding, and there is no gap to measure.
    """

    primal: float
    dual: float
    converged: bool
    closed_form: bool

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.dual)


def bounds_of(outcomes: Sequence[Outcome]) -> tuple[float, float]:
    """Primal and dual value of all members together, which share nothing; nan if one of them has no certificate.

    Members in closed form are at their optimum and add nothing to the gap; where all members are, there is none.
    """
    measured = [(each.primal, each.dual) for each in outcomes if not each.closed_form]
    if not measured:
        return np.nan, np.nan
    primal, dual = (float(sum(values)) for values in zip(*measured, strict=True))
    return primal, dual


@dataclass(eq=False)
class Progress:
    """What a search has found so far: the state of a step.

    Attributes
    ----------
    results : float64 array, shape (n_trials, n_measures + 2)
        The measures, seconds and epochs; nan of trials that are not made yet or left out.
    scores : dict of int to float32 array, shape (n_held_out, n_classes)
        Held-out scores of the trials that may be chosen yet, by their numbers.
    warm : dict of int to mapping
        For each fold the last state of the last trial, if that has the same family.
    warm_from : dict of int to int
        For each fold the number of that trial.
    left_out : dict of int to str
        Why trials were left out, by their numbers.
    trial, fold : int
        Under way.
    seconds, epochs : float, int
        Of all trials, and of this one.
    steps : int
        Of the training under way, in this process.
    pool : Pool or None
        Its members are trials' numbers.
    found : dict of str to float
        Measures of the pool on the held-out rows.
    kept : dict of str to mapping
        What the model needs besides its members, arrays by the names of ``KEPT``.
    final : dict of int to mapping
        The last states of the members that are trained on all rows.
    outcomes : list of Outcome
        Of the same members.
    """

    results: Floats
    scores: dict[int, Scores] = field(default_factory=dict)
    partial: list[Scores] = field(default_factory=list)
    warm: dict[int, State] = field(default_factory=dict)
    warm_from: dict[int, int] = field(default_factory=dict)
    left_out: dict[int, str] = field(default_factory=dict)
    trial: int = -1
    fold: int = 0
    seconds: float = 0.0
    epochs: int = 0
    trial_seconds: float = 0.0
    trial_epochs: int = 0
    steps: int = 0
    pool: Pool | None = None
    found: dict[str, float] = field(default_factory=dict)
    kept: dict[str, State] = field(default_factory=dict)
    final: dict[int, State] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    violation: float = 0.0

    def state(self, inner: State | None = None) -> State:
        """As arrays; ``inner`` is the state of the solver under way."""
        now = {
            "results": self.results,
            "counters": np.array([self.trial, self.fold, self.epochs, self.trial_epochs]),
            "measured": np.array([self.seconds, self.trial_seconds, self.violation]),
            "outcomes": np.array(self.outcomes, np.float64).reshape(-1, len(Outcome._fields)),
        }
        now["warm_from"] = np.array([self.warm_from.get(fold, -1) for fold in range(1 + max(self.warm, default=-1))])
        if self.left_out:
            now["left_out"] = np.array(list(self.left_out))
            now["reasons"] = np.array(list(self.left_out.values()))
        parts: dict[str, State] = {"now": now, "inner": inner or {}}
        parts["scores"] = {str(number): scores for number, scores in self.scores.items()}
        parts["partial"] = {str(fold): scores for fold, scores in enumerate(self.partial)}
        parts |= {f"warm{fold}": state for fold, state in self.warm.items()}
        parts |= {f"final{place}": state for place, state in self.final.items()}
        parts |= self.kept
        if self.pool is not None:
            parts["found"] = {name: np.array(value) for name, value in self.found.items()}
            parts["pool"] = {
                "members": np.array(self.pool.members),
                "coefficients": self.pool.coefficients,
                "log_loss": np.array(self.pool.log_loss),
            }
        return Parts(parts)

    @classmethod
    def resumed(cls, state: State) -> "tuple[Progress, State | None]":
        """What :meth:`state` has written; what a search changes in place is copied."""
        names = {name.partition(".")[0] for name in state}
        now, pool = part_of(state, "now"), part_of(state, "pool")
        found = cls(np.array(now["results"]))
        found.trial, found.fold, found.epochs, found.trial_epochs = (int(value) for value in now["counters"])
        found.seconds, found.trial_seconds, found.violation = (float(value) for value in now["measured"])
        found.outcomes = [
            Outcome(float(primal), float(dual), bool(converged), bool(exact))
            for primal, dual, converged, exact in now["outcomes"]
        ]
        if "left_out" in now:
            found.left_out = dict(zip(now["left_out"].tolist(), now["reasons"].tolist(), strict=True))
        found.scores = {int(number): scores for number, scores in part_of(state, "scores").items()}
        partial = part_of(state, "partial")
        found.partial = [partial[str(fold)] for fold in range(len(partial))]
        found.warm = {int(name[4:]): part_of(state, name) for name in names if name.startswith("warm")}
        found.warm_from = {fold: int(now["warm_from"][fold]) for fold in found.warm}
        found.final = {int(name[5:]): part_of(state, name) for name in names if name.startswith("final")}
        if pool:
            members = tuple(int(member) for member in pool["members"])
            found.pool = Pool(members, pool["coefficients"], float(pool["log_loss"]))
            found.found = {name: float(value) for name, value in part_of(state, "found").items()}
        found.kept = {name: part_of(state, name) for name in KEPT if name in names}
        return found, part_of(state, "inner") or None
