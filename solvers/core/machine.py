"""What all machines share that weigh the losses of examples by C: the problem they solve, its size, and a path in C.

Weights of classes and a constant feature only change the problem that is solved, so they are handled here, between the
caller and the algorithm: a machine trains the prepared problem, and every step and certificate is of that problem's
objective.

Weights of classes, by which the losses of their examples are multiplied.
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from typing import Annotated, Literal, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from solvers.core.base import Params, Solver, State, Step, within_range
from solvers.core.memory import refuse
from solvers.core.model import Model
from solvers.core.problem import Problem, ProblemError
from solvers.labels.costs import labels_without_rows
from solvers.numerics.array_types import Floats

ClassWeight = Literal["balanced"] | dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None


def class_weights(problem: Problem, given: ClassWeight) -> Floats:
    """The weight of every class, shape (n_classes,).

    Raises
    ------
    ProblemError
        A label has a weight that the problem does not have.
    """
    if given is None:
        return np.ones(problem.n_classes)
    if given == "balanced":
        counts = np.bincount(problem.y, problem.weights, problem.n_classes)
        return np.asarray(counts.sum() / (problem.n_classes * counts))
    assert isinstance(given, Mapping)
    fault = unknown_labels(given, problem.classes)
    if fault is not None:
        raise ProblemError(fault)
    return np.array([given.get(label, 1.0) for label in problem.classes])


def unknown_labels(given: ClassWeight, known: Iterable[str]) -> str | None:
    """What is wrong with weights by label where only the ``known`` labels are there; None if nothing is."""
    unknown = sorted(set(given) - set(known)) if isinstance(given, Mapping) else []
    return f"class_weight names {labels_without_rows(unknown)}" if unknown else None


# no C beyond it differs from the hard margin by more than rounding does
MOST = 1e15
# what sums of dual variables times features may come to, so that their squares stay within the range of floats
_REACH = 1e150


class MachineParams(Params):
    """What the machines have in common."""

    C: float = Field(
        default=1.0,
        gt=0,
        le=MOST,
        allow_inf_nan=False,
        description="Weight of the losses relative to the norm of the weights.",
    )
    bias: float = Field(
        default=0.0,
        ge=0,
        le=1e6,
        allow_inf_nan=False,
        description="Value of a constant feature that is appended to every example, as LIBLINEAR's -B. Its "
        "weights are regularised like all others. Kernel machines add its square to the kernel. 0 "
        "adds none.",
    )
    memory_mb: int | None = Field(
        default=None,
        ge=1,
        description="Refuse problems whose weights and dual variables need more than this many megabytes; the "
        "default is the machine's memory.",
    )


class SingleLabelParams(MachineParams):
    """What the machines for one label an example have in common."""

    class_weight: ClassWeight = Field(
        default=None,
        description="Multiplies the weights of each class's examples. balanced uses n / (n_classes * n_c), "
        "where n and n_c sum the examples' own weights. An object gives positive numbers by label; "
        "labels left out get 1.",
    )

    def label_faults(self, known: Iterable[str]) -> Mapping[str, str]:
        fault = unknown_labels(self.class_weight, known)
        return {} if fault is None else {"class_weight": fault}


M = TypeVar("M", bound=MachineParams)


class Machine(Solver[M]):
    """A machine that trains on the problem which its shared parameters make of the given one."""

    has_path = True

    @property
    def appends_constant(self) -> bool:
        """Whether a bias is one more feature, the last of the prepared problem; else it is the method's own affair."""
        return True

    def prepared(self, problem: Problem) -> Problem:
        """The problem that is solved.

        Raises
        ------
        ProblemError
            The method does not take such labels, or needs a label tree; ``class_weight`` names labels that the problem
            does not have; or C, weights and features are so large that sums of their products, or squares of these, are
            beyond the range of floats.
        """
        self.admit(problem)
        self.check_features(problem)
        with np.errstate(over="ignore", under="ignore"):
            weights = self.example_weights(problem)
            bounds = self.params.C * weights
        if not (np.isfinite(bounds).all() and (bounds > 0).all()):
            raise ProblemError("C times the weight of an example and of its class must be a positive, finite number")
        if weights is not problem.weights:
            problem = replace(problem, weights=weights)
        self._check_reach(problem, bounds)
        if self.params.bias == 0 or not self.appends_constant:
            return problem
        constant = sp.csr_matrix(np.full((problem.n_samples, 1), self.params.bias))
        return replace(problem, X=sp.csr_matrix(sp.hstack([problem.X, constant], format="csr")))

    def _check_reach(self, problem: Problem, bounds: Floats) -> None:
        X = problem.X
        largest = max(abs(float(X.data.max(initial=0.0))), abs(float(X.data.min(initial=0.0))), self.params.bias, 1.0)
        longest = int(np.diff(X.indptr).max(initial=0)) + 1
        with np.errstate(over="ignore"):
            reach = float(bounds.sum()) * largest * largest * longest
        if not reach < _REACH:
            raise ProblemError(
                f"features of up to {largest:.3g} with C and weights that sum to "
                f"{float(bounds.sum()):.3g} exceed the range of floats: divide the features by a "
                "constant, or lower C"
            )

    def example_weights(self, problem: Problem) -> Floats:
        """What the losses of the examples are multiplied by, beside C; shape (n_samples,)."""
        given = getattr(self.params, "class_weight", None)
        if given is None:
            return problem.weights
        return np.asarray(problem.weights * class_weights(problem, given)[problem.y])

    def steps(self, problem: Problem, state: State | None = None) -> Iterator[Step]:
        """Train on ``problem``, from the start or from the ``state`` of an earlier step.

        Raises
        ------
        TooLargeError
            More memory is needed than ``memory_mb`` allows; also later, where that shows only then.
        ProblemError
            As :meth:`prepared` has it.
        """
        problem = self.prepared(problem)
        n_features = int(np.count_nonzero(np.bincount(problem.X.indices, minlength=problem.n_features)))
        self.check_memory(problem.n_samples, n_features, problem.n_classes)
        return within_range(self.train(problem, state), self.handles.certified)

    def check_memory(self, n_samples: int, n_features: int, n_classes: int) -> None:
        """Raise TooLargeError, with an estimate, if a problem of that size needs more than ``memory_mb``."""
        needed = self.bytes_needed(n_samples, n_features, n_classes)
        refuse(f"{self.name} with {n_samples:,} examples and {n_classes:,} classes", needed, self.params.memory_mb)

    def model(self, problem: Problem, state: State) -> Model:
        """The model of ``state``; its report shows how sparse it is (Alber et al. 2017, Table 3).

        ``nonzero_weights`` is the share of the weights of all classes and features that are not zero, without the
        intercept, ``nonzero_duals`` that of the dual variables; each is left out where a method or model has none.
        """
        prepared = self.prepared(problem)
        fitted = self.fitted(prepared, state)
        model = self.answering(prepared, fitted)
        shares = {"nonzero_weights": model.nonzero_weights, "nonzero_duals": self.nonzero_duals(prepared, state)}
        known = {name: share for name, share in shares.items() if not math.isnan(share)}
        model.report = {**model.report, **self.reported(prepared, fitted), **known}
        return model

    def bare_model(self, problem: Problem, state: State) -> Model:
        prepared = self.prepared(problem)
        return self.answering(prepared, self.fitted(prepared, state))

    def answering(self, problem: Problem, fitted: Model) -> Model:
        """What answers to examples of the given problem, of a model that was fitted to the prepared one."""
        if self.params.bias == 0 or not self.appends_constant:
            return fitted
        model = fitted.with_last_as_intercept(self.params.bias)
        model.report = dict(fitted.report)
        return model

    def reported(self, problem: Problem, fitted: Model) -> Mapping[str, float]:
        """What else a report says of a model that was fitted to the prepared problem, where that takes time."""
        return {}

    def at(self, C: float) -> Self:
        """The same machine with another C."""
        other = copy(self)
        other.params = type(self.params).model_validate(self.params.model_dump() | {"C": C})
        return other

    def rescaled(self, problem: Problem, state: State, C: float) -> State:
        """A state to train from, made of one in which this machine at another ``C`` has ended.

        Every set of dual variables here is a box or a simplex of a size in proportion to C. So the multiple of them
        with the largest dual value is taken, of all those up to the ratio of the two Cs: each is feasible, and W
        follows in proportion. Epochs count from 0 again.
        """
        return self.rescale(self.prepared(problem), state, self.params.C / C)

    def dual_shares(self, problem: Problem, state: State) -> sp.csr_matrix:
        return self.shares_of(self.prepared(problem), state)

    def warm(self, problem: Problem, shares: sp.csr_matrix) -> State:
        """As all solvers; of multiples up to 1 of the dual variables that with the largest dual value is taken."""
        return self.started(self.prepared(problem), shares)

    def shares_of(self, problem: Problem, state: State) -> sp.csr_matrix:
        """As :meth:`dual_shares`, of the prepared problem."""
        return super().dual_shares(problem, state)

    def started(self, problem: Problem, shares: sp.csr_matrix) -> State:
        """As :meth:`warm`, on the prepared problem."""
        return super().warm(problem, shares)

    @abstractmethod
    def rescale(self, problem: Problem, state: State, ratio: float) -> State:
        """As :meth:`rescaled`, on the prepared problem; ``ratio`` is the new C by the old one."""

    @abstractmethod
    def nonzero_duals(self, problem: Problem, state: State) -> float:
        """The share of the dual variables that are not zero, among examples that are not empty; nan where unknown."""

    @abstractmethod
    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        """As :meth:`steps`, on the prepared problem."""

    @abstractmethod
    def fitted(self, problem: Problem, state: State) -> Model:
        """As :meth:`model`, for the prepared problem."""
