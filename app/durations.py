"""Histograms of durations, for the metrics."""

from bisect import bisect_left
from itertools import accumulate

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Durations:
    """A histogram: the client's own takes as long for one observation as the rest of a request's counting."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """The upper end of each bucket, and how many took no longer."""
        return list(zip([*map(str, BUCKETS), "+Inf"], accumulate(self.counts), strict=True))
