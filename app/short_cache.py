"""Answers that are remembered for less than a second, and asked for again before: so no request waits for them."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from app.errors import PolymarginError
from app.store.failures import FAILURES

K = TypeVar("K")
V = TypeVar("V")

# less than the second that is promised: what is asked for takes a moment, too
REMEMBERED_SECONDS = 0.9
_AGAIN_SECONDS = 0.25
_WANTED_SECONDS = 60.0
_MOST = 10_000
_LOCKS = 256


class _Answer(Generic[V]):
    __slots__ = ("asked_at", "used_at", "value")

    def __init__(self, value: V, asked_at: float, used_at: float) -> None:
        self.value = value
        self.asked_at = asked_at
        self.used_at = used_at


class Remembered(Generic[K, V]):
    """What ``ask`` said of each key, for less than a second from the moment at which it was asked.

    About one key only one thread asks at a time: else an answer that came late could take the place of a newer one, and
    who was given the newer would see the older again.

    Parameters
    ----------
    ask : callable
        Gives the value of a key from the database, or raises; raised errors are not remembered.
    """

    def __init__(self, ask: Callable[[K], V]) -> None:
        self._ask = ask
        self._answers: dict[K, _Answer[V]] = {}
        self._asking = tuple(threading.Lock() for _ in range(_LOCKS))  # each for the keys of some hashes
        self._forgotten = 0

    def ready(self, key: K) -> V | None:
        """The value, if it is known; never waits."""
        answer, now = self._answers.get(key), time.monotonic()
        if answer is None or now - answer.asked_at > REMEMBERED_SECONDS:
            return None
        answer.used_at = now
        return answer.value

    def known(self, key: K) -> V | None:
        """As :meth:`ready`, when the value is not wanted for its own sake: it is not kept the longer for that."""
        answer = self._answers.get(key)
        expired = answer is None or time.monotonic() - answer.asked_at > REMEMBERED_SECONDS
        return None if answer is None or expired else answer.value

    def values(self) -> set[V]:
        """All that is remembered, be it expired."""
        return {answer.value for answer in list(self._answers.values())}

    def get(self, key: K) -> V:
        """The value, asked for now or since; raises what ``ask`` raises."""
        wanted_at = time.monotonic()
        with self._asking_about(key):
            answer = self._answers.get(key)
            if answer is not None and answer.asked_at > wanted_at:  # another thread asked, for which this one waited
                return answer.value
            known, asked_at = self._forgotten, time.monotonic()
            value = self._ask(key)
            if known == self._forgotten:  # else it may be older than the change for which all was forgotten
                if len(self._answers) >= _MOST:
                    self._answers = {}
                self._answers[key] = _Answer(value, asked_at, asked_at)
            return value

    def forget(self) -> None:
        """Ask the database again about every key."""
        self._forgotten += 1
        self._answers = {}

    def refresh(self) -> None:
        """Ask again for all that was used within the last minute; what was not is left to expire.

        While the database is away answers stay until they expire.
        """
        answers = self._answers
        for key, answer in list(answers.items()):
            if time.monotonic() - answer.used_at > _WANTED_SECONDS:
                answers.pop(key, None)
                continue
            try:
                with self._asking_about(key):
                    asked_at = time.monotonic()
                    value = self._ask(key)
                    if answers.get(key) is answer:
                        answers[key] = _Answer(value, asked_at, answer.used_at)
            except PolymarginError:
                answers.pop(key, None)  # the next request asks itself and gets the error
            except FAILURES:
                return

    def _asking_about(self, key: K) -> threading.Lock:
        return self._asking[hash(key) % _LOCKS]


class Refreshing:
    """A thread that refreshes what is remembered, several times within the time for which it holds.

    A thread of its own: those that answer requests may all be busy for longer.
    """

    def __init__(self, remembered: Sequence[Remembered[Any, Any]]) -> None:
        self._remembered = remembered
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="refreshing", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for it."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ending.wait(_AGAIN_SECONDS):
            for one in self._remembered:
                one.refresh()
