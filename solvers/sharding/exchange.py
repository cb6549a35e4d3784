"""What the shards of one training exchange: arrays, posted by all and collected by all, in the order of their ranks."""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import numpy as np

from solvers.numerics.array_types import Array, Floats

Arrays = Sequence[Array]
# what shards exchange: of every batch the scores or the sums of dual variables that its block steps need; by turns the
# weights of half-shards, or the mean of all weights; or bounds once an epoch, of independent shards
ExchangeKind = Literal["scores", "sums", "bounds"]


class ExchangeError(RuntimeError):
    """A peer is lost or late; the shard that raises it has left the gang, and the training of the gang is over."""


class Exchange(Protocol):
    """One shard's end of the exchange within its gang.

    All shards post the same number of messages in the same order. Posting does not wait, so that work can go on while
    messages travel; what a message holds may differ from shard to shard in length, not in number of arrays.

    Attributes
    ----------
    rank, size : int
        This shard's number, from 0, and the number of shards.
    """

    rank: int
    size: int

    def post(self, arrays: Arrays) -> int:
        """Send contiguous arrays to every shard; they are copied. Returns the ticket of this round."""

    def collect(self, ticket: int) -> list[Arrays]:
        """What all shards have posted in that round, by rank; once a round. Raises ExchangeError."""

    def swap(self, messages: Mapping[int, Arrays]) -> dict[int, Arrays]:
        """Send contiguous arrays to some shards, each its own, and take what others have sent to this one, by rank.

        A round in which all shards take part, with or without messages. Raises ExchangeError.
        """

    def barrier(self) -> None:
        """Wait until every shard is here. Raises ExchangeError."""


def gather(exchange: Exchange, arrays: Arrays) -> list[Arrays]:
    """Post and collect in one; raises ExchangeError."""
    return exchange.collect(exchange.post(arrays))


def reduce(exchange: Exchange, array: Floats) -> Floats:
    """The sum over all shards, added in the order of ranks, so that all get the same bits; raises ExchangeError."""
    total = np.zeros_like(array)
    for (part,) in gather(exchange, [array]):
        total += part
    return total


class Hub:
    """Where the shards of one process meet.

    Parameters
    ----------
    size : int
        Number of shards.
    timeout : float
        Seconds that a shard waits for its peers before it gives up, and with it the gang.
    """

    def __init__(self, size: int, timeout: float = 600.0) -> None:
        self.size = size
        self.timeout = timeout
        self.rounds = 0
        self.bytes = 0
        self._changed = threading.Condition()
        self._posted: dict[int, dict[int, Arrays]] = {}
        self._collected: dict[int, int] = {}
        self._broken: str | None = None

    def exchange(self, rank: int) -> "LocalExchange":
        """That of the shard with that rank."""
        return LocalExchange(self, rank)

    def abort(self, reason: str) -> None:
        """Make every shard that waits, or will wait, raise ExchangeError."""
        with self._changed:
            self._broken = self._broken or reason
            self._changed.notify_all()

    def post(self, rank: int, ticket: int, arrays: Arrays) -> None:
        copies = [np.array(array) for array in arrays]
        with self._changed:
            self._posted.setdefault(ticket, {})[rank] = copies
            self.rounds = max(self.rounds, ticket + 1)
            self.bytes += sum(array.nbytes for array in copies)
            if len(self._posted[ticket]) == self.size:
                self._changed.notify_all()

    def collect(self, ticket: int) -> list[Arrays]:
        deadline = time.monotonic() + self.timeout
        with self._changed:
            while self._broken is None and len(self._posted.get(ticket, ())) < self.size:
                if not self._changed.wait(max(0.0, deadline - time.monotonic())) and time.monotonic() >= deadline:
                    here = self._posted.get(ticket, {})
                    late = [rank for rank in range(self.size) if rank not in here]
                    self._broken = f"shards {late} sent nothing for {self.timeout:g} s in round {ticket}"
                    self._changed.notify_all()
            if self._broken is not None:
                raise ExchangeError(self._broken)
            parts = self._posted[ticket]
            self._collected[ticket] = self._collected.get(ticket, 0) + 1
            if self._collected[ticket] == self.size:
                del self._posted[ticket], self._collected[ticket]
            return [parts[rank] for rank in range(self.size)]


class LocalExchange:
    """The exchange of a shard that shares its process with its peers, or has none."""

    def __init__(self, hub: Hub, rank: int) -> None:
        self.rank = rank
        self.size = hub.size
        self._hub = hub
        self._next = 0

    def post(self, arrays: Arrays) -> int:
        ticket, self._next = self._next, self._next + 1
        self._hub.post(self.rank, ticket, arrays)
        return ticket

    def collect(self, ticket: int) -> list[Arrays]:
        return self._hub.collect(ticket)

    def swap(self, messages: Mapping[int, Arrays]) -> dict[int, Arrays]:
        goals = np.array([to for to, arrays in messages.items() for _ in arrays], np.int64)
        parts = self.collect(self.post([goals, *(array for arrays in messages.values() for array in arrays)]))
        mine = {rank: [array for to, array in zip(part[0], part[1:], strict=True) if to == self.rank]
                for rank, part in enumerate(parts)}  # fmt: skip
        return {rank: arrays for rank, arrays in mine.items() if arrays}

    def barrier(self) -> None:
        self.collect(self.post([]))
