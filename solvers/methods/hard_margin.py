"""Machines without a regulariser: hard margins where the rows can be separated, else the least loss and its least norm.

    minimise  L(W) = sum_i loss(W' x_i, y_i),  then  1/2 sum_c |w_c|^2 among the minimisers

The loss is that of ``weston_watkins``, ``crammer_singer`` or ``lee_lin_wahba`` (Alber et al. 2017, equations (2) and
(3); Crammer and Singer 2002, section 4). The machine of that loss is trained at C, 10 C, 100 C ..., each from the
solution before, and both levels are certified after each (:mod:`solvers.linear.levels`): from a finite C on the
machine's solution is the limit (Mangasarian and Meyer 1979). Rows are divided by their root mean squared
length meanwhile, so that the first C suits any scale.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from solvers.core.base import Handles, Params, Solver, State, Step, relative_gap
from solvers.core.linear_model import LinearModel
from solvers.core.machine import ClassWeight, unknown_labels
from solvers.core.memory import refuse
from solvers.core.methods import all_methods
from solvers.core.problem import Problem
from solvers.linear import levels
from solvers.linear.levels import Levels, LossName
from solvers.numerics.array_types import Array, Floats

FIRST, FACTOR, MOST = 1.0, 10.0, 1e12
# up to which multiple of the weights' length no others may have less loss
REACH = 10.0
# of a tolerance that was not enough, and the least one that a machine is asked for
TIGHTER, LEAST = 0.1, 1e-13
# times the largest bound of a dual variable and the precision: the relative gap below which rounding may end progress;
# it has where half of the epochs have not lowered the gap
ROUNDED = 16.0
# margins below this part of the longest row's length count as none
NO_MARGIN = 1e-5


class HardMarginParams(Params):
    """Parameters of the machines without a regulariser."""

    loss: LossName = Field(
        default="weston_watkins",
        description="The machine whose loss is minimised. Where rows can be separated, weston_watkins and "
        "crammer_singer have the same solution.",
    )
    class_weight: ClassWeight = Field(
        default=None, description="Multiplies the loss of each class's examples, as for the machine of that loss."
    )
    bias: float = Field(
        default=0.0,
        ge=0,
        le=1e6,
        allow_inf_nan=False,
        description="Value of a constant feature that is appended to every example; its weights count in the norm. "
        "0 adds none.",
    )
    tol: float = Field(
        default=1e-2,
        gt=0,
        lt=1,
        description="Stop where no weights of up to ten times the length have a loss lower by this part, and none of "
        "no more loss have half a squared length lower by this part.",
    )
    max_epochs: int = Field(
        default=10_000, ge=1, le=10**9, description="Stop after this many passes or iterations over all values of C."
    )
    memory_mb: int | None = Field(
        default=None, ge=1, description="Refuse problems that need more than this many megabytes."
    )

    def label_faults(self, known: Any) -> Mapping[str, str]:
        fault = unknown_labels(self.class_weight, known)
        return {} if fault is None else {"class_weight": fault}


_FIELDS = (
    "C", "loss", "loss_radius", "norm", "norm_bound", "least_margin", "separation", "unit", "contradictions",
    "exhausted",
)  # fmt: skip
# of a state between certificates
_NOTHING = np.full(len(_FIELDS), math.nan)


@dataclass(frozen=True)
class _Place:
    """Where a training is; all of it is of rows divided by their root mean squared length.

    Attributes
    ----------
    C, following : float
        Of the weights, and the C that is next, which is the same where it is to be solved more precisely.
    tol : float
        The gap that is asked for at the following C.
    epoch, before : float
        Epochs of the last step, and those before the following C began.
    loss : float
        The least loss that a certificate has found.
    dual : float
        The best lower bound of a machine's objective: as objectives rise with C, that at any greater C, too.
    gap, at : float
        The least relative gap at the following C, and how many epochs it took.
    """

    C: float
    following: float
    tol: float
    epoch: float = 0.0
    before: float = 0.0
    loss: float = math.inf
    dual: float = 0.0
    gap: float = math.inf
    at: float = 0.0


class HardMargin(Solver[HardMarginParams]):
    """The limit of a machine as C grows, with certificates of its loss, its norm, and of what can be separated."""

    name = "hard_margin"
    title = "Hard-margin SVM, or least loss (C to infinity)"
    formula = r"\lim_{C \to \infty} \; \tfrac12 \sum_c \|w_c\|^2 + C \sum_i \ell(W^\top x_i, y_i)"
    paper = "Mangasarian and Meyer 1979; Alber et al. 2017"
    handles = Handles(flat=True)
    Params = HardMarginParams

    def steps(self, problem: Problem, state: State | None = None) -> Iterator[Step]:
        """Train; the bounds of a step are those of the machine at its C, and certificates have both levels as measures.

        Raises
        ------
        TooLargeError
            More memory is needed than ``memory_mb`` allows.
        ProblemError
            The machine does not take such a problem.
        """
        self.admit(problem)
        self.check_features(problem)
        n_features = int(np.count_nonzero(np.bincount(problem.X.indices, minlength=problem.n_features)))
        self.check_memory(problem.n_samples, n_features, problem.n_classes)
        return self._steps(*_scaled(problem, self.params.bias), state)

    def _steps(self, problem: Problem, unit: float, state: State | None) -> Iterator[Step]:
        place = _Place(FIRST, FIRST, self.params.tol) if state is None else _Place(*state["place"].tolist())
        while place.following <= MOST and place.before < self.params.max_epochs:
            machine = self._machine(place, unit)
            if state is not None and place.following != place.C:
                state = machine.rescaled(problem, state, place.C)
            place, converged, ended = replace(place, C=place.following), False, False
            rounded = ROUNDED * levels.EPS * place.C * float(machine.example_weights(problem).max())
            for step in machine.steps(problem, state):
                state, converged = step.state, step.converged
                place = replace(place, epoch=place.before + step.epoch, dual=max(place.dual, _known(step.dual)))
                gap = relative_gap(step.primal, step.dual)
                ended = place.gap <= min(rounded, gap) and step.epoch >= 2 * place.at
                if gap < place.gap:
                    place = replace(place, gap=gap, at=step.epoch)
                if converged or ended:
                    break
                yield self._step(step, place, unit)
            assert state is not None
            found = self._levels(problem, machine, state, place)
            certified, solved = self._certified(found), converged or ended
            following = self._after(found, place, ended=ended) if solved else place
            dual = min(found.primal, max(found.dual, place.dual))
            place = replace(following, loss=min(found.loss, place.loss), dual=dual, gap=math.inf, at=0.0)
            exhausted = not certified and place.following == math.inf
            yield self._certificate(found, place, unit, state, certified, _stored(found, self.params.tol, exhausted))
            if certified or not solved:
                return

    def _machine(self, place: _Place, unit: float) -> Any:
        """The machine at the C that follows, on rows in that unit."""
        method = all_methods()[self.params.loss]
        params = {
            "C": place.following,
            "tol": place.tol,
            "max_epochs": max(1, self.params.max_epochs - int(place.before)),
            "class_weight": self.params.class_weight,
            "bias": self.params.bias / unit,
            "memory_mb": self.params.memory_mb,
            "dtype": "float64",
        }
        return method(method.Params.model_validate(params), seed=self.seed, threads=self.threads)

    def _levels(self, problem: Problem, machine: Any, state: State, place: _Place) -> Levels:
        prepared = machine.prepared(problem)
        weights = machine.fitted(prepared, state).linear_weights()
        W = np.zeros((prepared.n_features, prepared.n_classes))
        W[weights.features] = weights.dense()
        task = levels.Task(prepared.X, prepared.y, prepared.weights, prepared.n_classes, self.params.loss)
        alpha, tol = machine.dual_variables(prepared, state), self.params.tol
        found = levels.certify(task, W, alpha, place.C, polish=False)
        if found.least_margin > 0 or found.loss < (1.0 - tol) * place.loss:
            return found
        return levels.certify(task, W, alpha, place.C)

    def _certified(self, found: Levels) -> bool:
        """Whether the weights are hard margins, or have least loss and norm, all within the tolerance."""
        tol = self.params.tol
        if found.least_margin > 0:
            return found.hard_gap <= tol
        return found.norm_gap <= tol and self._reaches(found) and self._inseparable(found)

    def _inseparable(self, found: Levels) -> bool:
        """Whether no weights separate the rows but such of a margin that counts as none."""
        return found.separation >= found.unit / NO_MARGIN

    def _reaches(self, found: Levels) -> bool:
        """Whether the loss is the least, within the tolerance, of all weights of up to a multiple of the length."""
        return found.loss_radius(self.params.tol) >= REACH * max(found.norm, found.unit)

    def _after(self, found: Levels, place: _Place, *, ended: bool) -> _Place:
        """What follows a certificate: the same C solved more precisely, the next, or nothing, an infinite one.

        At more than twice the least C whose solution is the limit, C times the excess of the loss is at most twice the
        gap: the objective at half of C would otherwise be below its minimum. Without a separation C grows as
        long as the loss falls without a certificate, and where the norm is certified and the rest is not.

        The machine's values are about C times the loss, and rounding is a part of these. So where it has ``ended``
        progress, and the norm alone is not certified, a greater C would certify less of it.
        """
        tol, half, gap = self.params.tol, 0.5 * found.norm**2, found.primal - found.dual
        if found.least_margin > 0:
            too_small, last = found.C * found.loss > 2.0 * gap, True
        else:
            falls = found.loss < (1.0 - tol) * place.loss
            too_small = found.norm_gap <= tol or (falls and not self._reaches(found))
            last = self._reaches(found) and self._inseparable(found)
        finest = 0.5 * tol * half / found.primal if found.primal > 0 else tol
        tighter = min(finest, TIGHTER * place.tol)
        if not too_small and not ended and tighter >= LEAST:
            return replace(place, tol=tighter)
        following = math.inf if last and not too_small else FACTOR * place.C
        return replace(place, following=following, tol=max(LEAST, min(tol, place.tol)), before=place.epoch)

    def _step(self, step: Step, place: _Place, unit: float, stored: Floats = _NOTHING) -> Step:
        dual = place.dual if not math.isnan(step.dual) else step.dual
        return replace(
            step,
            epoch=int(place.epoch),
            primal=step.primal / unit**2,
            dual=dual / unit**2,
            setting=f"C = {place.C / unit**2:.4g}",
            state={**step.state, "place": np.array(astuple(place)), "levels": stored},
        )

    def _certificate(
        self, found: Levels, place: _Place, unit: float, state: State, certified: bool, stored: Floats
    ) -> Step:
        primal, dual = found.primal, place.dual
        if certified and found.least_margin > 0:
            primal = 0.5 * (found.norm / found.least_margin) ** 2
            dual = min(primal, max(dual, 0.5 * found.separation**2))
        step = Step(0, primal, dual, math.nan, certified, state, measures=_report(stored, unit))
        return self._step(step, replace(place, dual=dual), unit, stored)

    def model(self, problem: Problem, state: State) -> LinearModel:
        """The model of ``state``; at a certificate its report has both levels, and a positive least margin is 1."""
        scaled, unit = _scaled(problem, self.params.bias)
        place = _Place(*state["place"].tolist())
        model: LinearModel = self._machine(replace(place, following=place.C), unit).model(scaled, state)
        stored = state["levels"]
        margin = float(stored[_FIELDS.index("least_margin")])
        margin = margin if margin > 0 else 1.0
        model.W /= unit * margin
        if model.intercept is not None:
            model.intercept /= margin
        shares = {name: share for name, share in model.report.items() if name in ("nonzero_weights", "nonzero_duals")}
        model.report = shares | _report(stored, unit)
        return model

    @classmethod
    def uncertified(cls, params: Mapping[str, Any], report: Mapping[str, float]) -> str | None:
        if "norm" not in report:
            return None
        tol, norm, lacks = params["tol"], report["norm"], []
        if not report.get("separable"):
            radius = report.get("loss_radius", math.inf)
            if radius < REACH * norm:
                lacks.append(f"the least loss (only among weights of length {radius:.4g}, not {REACH * norm:.4g})")
            if "separable" not in report:
                lacks.append("whether the rows can be separated")
        if 1.0 - (report.get("norm_bound", 0.0) / norm) ** 2 > tol:
            lacks.append(f"the least norm (at least {report.get('norm_bound', 0.0):.6g}, found {norm:.6g})")
        missing = f"Not certified: {' and '.join(lacks)}."
        if "exhausted" in report:
            return f"{missing} Float64 resolves no more on these rows: raise tol."
        other = "loss=crammer_singer, " if params["loss"] == "lee_lin_wahba" else ""
        return f"{missing} Raise max_epochs, or use {other}a larger tol, or {params['loss']} with a C of your choice."

    def check_memory(self, n_samples: int, n_features: int, n_classes: int) -> None:
        """Raise TooLargeError, with an estimate, if a problem of that size needs more than ``memory_mb``."""
        needed = self.bytes_needed(n_samples, n_features, n_classes)
        refuse(f"{self.name} with {n_samples:,} examples and {n_classes:,} classes", needed, self.params.memory_mb)

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        """What the machine takes, and a certificate: arrays of all dual variables and of all weights."""
        machine = self._machine(_Place(FIRST, FIRST, self.params.tol), 1.0)
        certificate = 8 * n_classes * (levels.ARRAYS * n_samples + levels.WEIGHTS * n_features)
        return int(machine.bytes_needed(n_samples, n_features, n_classes)) + certificate


def _stored(found: Levels, tol: float, exhausted: bool) -> Floats:
    """The numbers of a certificate, as a state has them."""
    own = {"loss_radius": found.loss_radius(tol), "exhausted": float(exhausted)}
    return np.array([own.get(name, getattr(found, name, math.nan)) for name in _FIELDS])


def _report(stored: Array, unit: float) -> dict[str, float]:
    """What is certified, by name, of the rows as they were given; empty without a certificate.

    Of separated rows these are the norm of the hard margins and its bound; of others loss and norm. All are finite:
    what has no bound is left out.
    """
    at = dict(zip(_FIELDS, stored.tolist(), strict=True))
    if math.isnan(at["C"]):
        return {}
    found = {"C": at["C"] / unit**2, "contradictions": at["contradictions"]}
    if at["exhausted"]:
        found["exhausted"] = 1.0
    if at["least_margin"] > 0:
        norm, bound = at["norm"] / at["least_margin"], at["separation"]
        found |= {"separable": 1.0, "loss": 0.0, "norm": norm / unit, "norm_bound": bound / unit}
    else:
        if at["contradictions"] or at["separation"] >= at["unit"] / NO_MARGIN:
            found["separable"] = 0.0
        found |= {"loss": at["loss"], "loss_radius": max(0.0, at["loss_radius"]) / unit}
        found |= {
            "norm": at["norm"] / unit,
            "norm_bound": at["norm_bound"] / unit,
            "separation": at["separation"] / unit,
        }
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _scaled(problem: Problem, bias: float) -> tuple[Problem, float]:
    """The problem with rows divided by the root of their mean squared length, the constant feature's share included."""
    data = problem.X.data
    largest = max(float(np.abs(data).max(initial=0.0)), bias)
    if largest == 0.0:
        return problem, 1.0
    unit = largest * math.sqrt((float(((data / largest) ** 2).sum()) / problem.n_samples) + (bias / largest) ** 2)
    X = sp.csr_matrix((data / unit, problem.X.indices, problem.X.indptr), shape=problem.X.shape)
    return replace(problem, X=X), unit


def _known(dual: float) -> float:
    return 0.0 if math.isnan(dual) else dual
