"""Parameters of the flat linear machines: when to stop, and in which precision to compute."""

from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import Field

from solvers.core.machine import SingleLabelParams


class AscentParams(SingleLabelParams):
    """What the flat linear machines have in common."""

    tol: float = Field(default=1e-2, gt=0, lt=1, description="Stop at this relative duality gap.")
    max_epochs: int = Field(
        default=1000, ge=1, le=10**9, description="Stop after this many passes even if training has not converged."
    )
    dtype: Literal["auto", "float32", "float64"] = Field(
        default="auto", description="Precision of the weights; auto selects float32 if tol is 1e-4 or more."
    )


A = TypeVar("A", bound=AscentParams)


def precision(params: AscentParams) -> np.dtype[Any]:
    """The floats that ``params`` ask for."""
    if params.dtype == "auto":
        return np.dtype(np.float32 if params.tol >= 1e-4 else np.float64)
    return np.dtype(params.dtype)
