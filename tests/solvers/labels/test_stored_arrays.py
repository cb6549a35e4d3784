"""Arrays of stored models that compiled loops cannot read are refused."""

import numpy as np
import pytest

from solvers.labels import stored_arrays
from solvers.labels.stored_arrays import ArrayFault


def test_half_precision_is_taken_where_it_is_read() -> None:
    halves = np.zeros(3, np.float16)
    stored_arrays.require_floats("W", halves, 3, half=True)
    with pytest.raises(ArrayFault, match="array W has the type float16"):
        stored_arrays.require_floats("W", halves, 3)


@pytest.mark.parametrize("dtype", ["U5", "float16", "uint8", "bool", "complex64"])
def test_what_are_no_numbers_is_refused(dtype: str) -> None:
    with pytest.raises(ArrayFault, match="array code"):
        stored_arrays.require_numbers("code", np.zeros((2, 3), dtype), 2, 3)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64"])
def test_numbers_have_the_shape_that_is_expected(dtype: str) -> None:
    stored_arrays.require_numbers("code", np.zeros((2, 3), dtype), 2, 3)
    with pytest.raises(ArrayFault, match="the shape"):
        stored_arrays.require_numbers("code", np.zeros((2, 3), dtype), 2, 4)
