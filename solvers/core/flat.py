"""What all flat machines share: weights of classes, and a constant feature that gives every class an intercept.

Both only change the problem that is solved, so they stand here once, between the caller and the algorithm: a machine
trains the prepared problem, and every step and certificate is of that problem's objective.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, SupportsFloat, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from solvers.core.base import State
from solvers.core.machine import Machine, MachineParams
from solvers.core.model import LinearModel
from solvers.core.problem import Problem, ProblemError
from solvers.core.sparse_linear_model import SparseLinearModel

NAMED = 5

ClassWeight = Literal["balanced"] | dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None


class FlatParams(MachineParams):
    """What the flat machines have in common."""

    class_weight: ClassWeight = Field(
        default=None,
        description="Multiplies the weights of each class's examples: balanced takes n / (n_classes * n_c), counted "
        "with the examples' own weights; an object gives positive numbers by label, 1 where a label is left out.",
    )

    def label_faults(self, known: Iterable[str]) -> Mapping[str, str]:
        fault = unknown_labels(self.class_weight, known)
        return {} if fault is None else {"class_weight": fault}


F = TypeVar("F", bound=FlatParams)


class FlatMachine(Machine[F]):
    """A machine for one label an example, whose classes may have weights."""

    def example_weights(self, problem: Problem) -> NDArray[np.float64]:
        if self.params.class_weight is None:
            return problem.weights
        return np.asarray(problem.weights * class_weights(problem, self.params.class_weight)[problem.y])


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
