"""Two ways to the same result, timed in turn."""

import statistics
import time
from collections.abc import Callable
from typing import Any

REPETITIONS = 15
Row = tuple[Any, ...]


def seconds(*functions: Callable[..., Any], arguments: tuple[Any, ...]) -> list[float]:
    """Of each function the median of several calls, in turn, after one that compiles."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(1 + REPETITIONS):
        for function, spent in zip(functions, times, strict=True):
            began = time.process_time()
            function(*arguments)
            spent.append(time.process_time() - began)
    return [statistics.median(spent[1:]) for spent in times]
