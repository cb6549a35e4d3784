"""The arrays that annotations name: one name for each type of element, whatever the shape."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
AnyFloats = NDArray[np.floating[Any]]
AnyInts = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Ints8 = NDArray[np.int8]
Bytes = NDArray[np.uint8]
Bools = NDArray[np.bool_]
