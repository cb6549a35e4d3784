"""How often something may happen: so many times a second in the mean, and some at once."""

import time

_MOST_NAMES = 10_000


class Rates:
    """A leaky bucket for each name, in the memory of this process.

    Parameters
    ----------
    per_second : float
        In the mean; 0: any number.
    at_once : float
        So many may come at the same moment after a pause.
    """

    def __init__(self, per_second: float, at_once: float) -> None:
        self._interval = 0.0 if per_second <= 0 else 1.0 / per_second
        self._slack = self._interval * max(0.0, at_once - 1.0)
        self._due: dict[str, float] = {}  # when the name's bucket will be empty

    def wait(self, name: str) -> float:
        """Seconds until the name may come again; 0: now."""
        return max(0.0, self._due.get(name, 0.0) - self._slack - time.monotonic())

    def acquire(self, name: str) -> float:
        """As :meth:`wait`, and where that is 0 the name has come."""
        now = time.monotonic()
        due = max(self._due.get(name, 0.0), now)
        if due - now > self._slack:
            return due - now - self._slack
        if self._interval:
            if len(self._due) >= _MOST_NAMES:
                self._forget(now)
            self._due[name] = due + self._interval
        return 0.0

    def _forget(self, now: float) -> None:
        self._due = {name: due for name, due in self._due.items() if due > now}
        if len(self._due) >= _MOST_NAMES:
            self._due.clear()
