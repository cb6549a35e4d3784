"""Weights of classes, by which the losses of their examples are multiplied."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from solvers.core.problem import Problem, ProblemError
from solvers.numerics.array_types import Floats

NAMED = 5

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
    if not unknown:
        return None
    named = ", ".join(f"{label!r:.80}" for label in unknown[:NAMED])
    more = f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
    labels = "1 label" if len(unknown) == 1 else f"{len(unknown)} labels"
    return f"class_weight names {labels} that no training row has: {named}{more}"
