"""Labels and weights of examples as callers give them."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from solvers.numerics.array_types import Bools, Floats

_NAMED = 5


def require_labels(y: Any) -> None:
    """Raise ValueError if rows of ``y`` have None or NaN in the place of a label, and name the rows."""
    if y is None:
        return
    values = np.array([None, *y], object)[1:] if isinstance(y, list | tuple) else np.asarray(y)
    listed = [] if values.dtype.kind in "biuUS" else values.ravel().tolist()
    rows = [i for i, label in enumerate(listed) if label is None or _is_missing(label)]
    if rows:
        more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
        named = ", ".join(map(str, rows[:_NAMED]))
        raise ValueError(f"y has no label in {len(rows)} of {len(listed)} rows: {named}{more}")


def kept_weights(sample_weight: ArrayLike | None, shape: tuple[int, ...]) -> tuple[Bools, Floats | None]:
    """Which examples count, and the weights of those."""
    if sample_weight is None:
        return np.ones(shape, bool), None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != shape:
        raise ValueError(f"sample_weight has shape {weights.shape}; y has {shape}")
    if len(wrong := np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))):
        more = f", and {len(wrong) - 1} more are wrong" if len(wrong) > 1 else ""
        raise ValueError(
            f"sample_weight must be at least 0 and finite; it is {weights[wrong[0]]} in row {wrong[0]}{more}"
        )
    keep = weights != 0
    if not keep.any():
        raise ValueError("every sample_weight is zero; at least two examples need a positive weight")
    return keep, weights[keep]


def _is_missing(label: Any) -> bool:
    # pandas' NA equals nothing and NaT is no float
    return (isinstance(label, float) and label != label) or type(label).__name__ in ("NAType", "NaTType")
