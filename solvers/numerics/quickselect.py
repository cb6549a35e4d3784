"""The k-th smallest value: in place of ``np.partition``, which takes five seconds to compile."""

from typing import Any

from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def kth_smallest(values: NDArray[Any], k: int) -> Any:
    """The value that would stand at place k if the values were sorted (quickselect, Hoare 1961).

    Parameters
    ----------
    values : float array, shape (n,)
        Without NaN; changes its order.
    k : int
        From 0 to n - 1.
    """
    first, last = 0, values.shape[0] - 1
    while first < last:
        pivot = _median(values[first], values[(first + last) // 2], values[last])
        i, j = first, last
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            last = j
        elif k >= i:
            first = i
        else:
            break
    return values[k]


@njit(inline="always")
def _median(a: Any, b: Any, c: Any) -> Any:
    return max(min(a, b), min(max(a, b), c))
