"""What all flat machines share: weights of classes, and a constant feature that gives every class an intercept.

Both only change the problem that is solved, so they stand here once, between the caller and the algorithm: a machine
trains the prepared problem, and every step and certificate is of that problem's objective.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from typing import Annotated, Any, Literal, Self, SupportsFloat, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from solvers.base import Params, Solver, State, Step
from solvers.memory import refuse
from solvers.model import LinearModel, Model
from solvers.problem import Problem, ProblemError
from solvers.sparse_linear_model import SparseLinearModel

NAMED = 5

ClassWeight = Literal["balanced"] | dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None


class FlatParams(Params):
    """What the flat machines have in common."""

    C: float = Field(
        default=1.0, gt=0, allow_inf_nan=False, description="Weight of the losses against the norm of the weights."
    )
    class_weight: ClassWeight = Field(
        default=None,
        description="Multiplies the weights of each class's examples: balanced takes n / (n_classes * n_c), counted "
        "with the examples' own weights; an object gives positive numbers by label, 1 where a label is left out.",
    )
    bias: float = Field(
        default=0.0,
        ge=0,
        allow_inf_nan=False,
        description="Value of a constant feature that is appended to every example, as LIBLINEAR's -B; its weights are "
        "regularised like all others. Kernel machines add its square to the kernel. 0: none.",
    )

    memory_mb: int | None = Field(
        default=None,
        ge=1,
        description="Refuse problems whose weights and dual variables need more megabytes; by default, more than the "
        "machine has.",
    )


F = TypeVar("F", bound=FlatParams)


class FlatMachine(Solver[F]):
    """A machine that trains on the problem which its shared parameters make of the given one."""

    def prepared(self, problem: Problem) -> Problem:
        """The problem that is solved.

        Raises
        ------
        ProblemError
            ``class_weight`` names labels that the problem does not have, or a product of C and weights is beyond
            the range of floats.
        """
        with np.errstate(over="ignore", under="ignore"):
            weights = problem.weights * class_weights(problem, self.params.class_weight)[problem.y]
            bounds = self.params.C * weights
        if not (np.isfinite(bounds).all() and (bounds > 0).all()):
            raise ProblemError("C times the weight of an example and of its class is not a positive, finite number")
        return problem if self.params.class_weight is None else replace(problem, weights=weights)

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
        return self.train(problem, state)

    def check_memory(self, n_samples: int, n_features: int, n_classes: int) -> None:
        """Raise TooLargeError, with an estimate, if a problem of that size needs more than ``memory_mb``."""
        needed = self.bytes_needed(n_samples, n_features, n_classes)
        refuse(f"{self.name} with {n_samples:,} examples and {n_classes:,} classes", needed, self.params.memory_mb)

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        """What weights and dual variables take at least; ``n_features`` are those that some example has.

        A machine that cannot say it, as one of parts of other methods, has 0 here.
        """
        return 0

    def model(self, problem: Problem, state: State) -> Model:
        return self.fitted(self.prepared(problem), state)

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

    @abstractmethod
    def rescale(self, problem: Problem, state: State, ratio: float) -> State:
        """As :meth:`rescaled`, on the prepared problem; ``ratio`` is the new C by the old one."""

    @abstractmethod
    def nonzero_duals(self, problem: Problem, state: State) -> float:
        """The share of the dual variables that are not zero, among examples that are not empty."""

    @abstractmethod
    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        """As :meth:`steps`, on the prepared problem."""

    @abstractmethod
    def fitted(self, problem: Problem, state: State) -> Model:
        """As :meth:`model`, for the prepared problem."""


class LinearMachine(FlatMachine[F]):
    """A machine with one weight vector a class; the constant feature is the last column of the prepared problem."""

    def prepared(self, problem: Problem) -> Problem:
        problem = super().prepared(problem)
        if self.params.bias == 0:
            return problem
        constant = sp.csr_matrix(np.full((problem.n_samples, 1), self.params.bias))
        return replace(problem, X=sp.csr_matrix(sp.hstack([problem.X, constant], format="csr")))

    def model(self, problem: Problem, state: State) -> LinearModel | SparseLinearModel:
        """The model that ``state`` stands for; its report tells how sparse it is (Alber et al. 2017, Table 3).

        ``nonzero_weights`` is the share of the weights of all classes and features that are not zero, without the
        intercept, ``nonzero_duals`` that of the dual variables.
        """
        prepared = self.prepared(problem)
        model = self.fitted(prepared, state)
        if self.params.bias > 0:
            model = model.with_last_as_intercept(self.params.bias)
        n_weights = model.W.nnz if isinstance(model, SparseLinearModel) else np.count_nonzero(model.W)
        weights = n_weights / (len(model.classes) * model.n_features)
        model.report = {"nonzero_weights": float(weights), "nonzero_duals": self.nonzero_duals(prepared, state)}
        return model

    @abstractmethod
    def fitted(self, problem: Problem, state: State) -> LinearModel | SparseLinearModel: ...


def best_multiple(linear: float, square: float, most: float) -> float:
    """The t in [0, most] with the largest ``t linear - t^2 square / 2``."""
    return min(linear / square, most) if square > 0 else most


def settled(alpha: NDArray[Any], bounds: NDArray[Any]) -> NDArray[Any]:
    """Scaled dual variables in their boxes: what rounding keeps from its bound, or lifts above it, is at it exactly."""
    near = bounds * (1.0 - 16.0 * float(np.finfo(alpha.dtype).eps))
    return np.where(alpha >= near, bounds.astype(alpha.dtype), alpha)


def filled(problem: Problem) -> NDArray[np.bool_]:
    """Which examples have a feature that is not zero, shape (n_samples,); the variables of others change nothing."""
    return np.asarray(problem.X.multiply(problem.X).sum(axis=1)).ravel() > 0


def share(part: SupportsFloat, whole: SupportsFloat) -> float:
    """``part / whole``, 0 of nothing."""
    return float(part) / float(whole) if float(whole) > 0 else 0.0


def class_weights(problem: Problem, given: ClassWeight) -> NDArray[np.float64]:
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
    if not unknown:
        return None
    named = ", ".join(f"{label!r:.80}" for label in unknown[:NAMED])
    more = f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
    return f"class_weight names {len(unknown)} label(s) that no training row has: {named}{more}"
