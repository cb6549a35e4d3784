"""What a coordinator and its shards exchange: the names of a gang, its messages, and how it ends.

They meet in two exchanges. In one the shards alone exchange what the training needs. In the other, the control, the
coordinator is the last rank: a round after every step, in which the shards post what they have reached and the
coordinator posts, ahead of the step, what is to be done after it. All of them read both, so all do the same.
"""

import json
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.version import VERSION
from solvers.core.base import STATE_FORMAT, Step
from solvers.sharding.exchange import ExchangeError
from workers.sharding.exchange import RedisExchange
from workers.sharding.gang_keys import RedisLostError, break_gang, close_gang

CONTINUE, SAVE, LEAVE = 0, 1, 2
# of the program and of the solvers' states: the same in all members of a gang
VERSIONS = f"{VERSION} (states {STATE_FORMAT})"
_DRAINED = "a worker ends"


class Lost(Exception):
    """A shard was lost, or has been silent for too long."""


class Waiting(Exception):
    """A resource of the job is not available now; a sweep tries again."""


class Failed(Exception):
    """A shard has failed; ``document`` says why."""

    def __init__(self, document: dict[str, Any]) -> None:
        super().__init__(document["detail"])
        self.document = document


def names(job_id: str, attempt: int) -> tuple[str, str]:
    """The gangs of an attempt: of the exchange among the shards, and of the control."""
    return f"job:{job_id}:a{attempt}:x", f"job:{job_id}:a{attempt}:c"


def break_all(url: str, job_id: str, attempt: int, reason: str) -> None:
    """Wake all that wait in the gangs of an attempt with ExchangeError; quiet where Redis is away."""
    for name in names(job_id, attempt):
        try:
            break_gang(url, name, reason)
        except ExchangeError:
            return


def close_all(url: str, job_id: str, attempts: range) -> None:
    """Remove what these attempts have in Redis; quiet where Redis is away, as the keys expire."""
    every = [name for attempt in attempts for name in names(job_id, attempt)]
    try:
        if every:
            close_gang(url, *every)
    except ExchangeError:
        return


def failure(document: dict[str, Any]) -> str:
    """The reason to break a gang with when a shard fails."""
    return json.dumps(document)


def drained() -> str:
    """The reason to break a gang with when a worker ends before the training has begun."""
    return _DRAINED


def outcome(error: ExchangeError) -> Exception:
    """The error of the job for the end of an exchange: Waiting, Failed or Lost."""
    if isinstance(error, RedisLostError):
        return Waiting(str(error))
    if str(error) == _DRAINED:
        return Waiting(str(error))
    if str(error).startswith("{"):
        return Failed(json.loads(str(error)))
    return Lost(str(error))


class Report(NamedTuple):
    """What a shard reports after a step; ``ended`` says that there was none left."""

    ended: float
    epoch: float
    primal: float
    dual: float
    violation: float
    converged: float
    drains: float
    rounds: float
    bytes: float
    waited: float

    @classmethod
    def from_step(cls, step: Step | None, exchange: RedisExchange, drains: bool) -> "Report":
        """After a step, or after the last one."""
        counts = (float(exchange.rounds), float(exchange.bytes), exchange.waited)
        if step is None:
            return cls(1.0, 0.0, np.nan, np.nan, np.nan, 0.0, float(drains), *counts)
        bounds = (float(step.epoch), step.primal, step.dual, step.violation, float(step.converged))
        return cls(0.0, *bounds, float(drains), *counts)

    def array(self) -> NDArray[np.float64]:
        return np.array(self, np.float64)


def encode(value: Any) -> NDArray[np.uint8]:
    """JSON as an array that an exchange takes."""
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def decode(array: NDArray[Any]) -> Any:
    """What was encoded."""
    return json.loads(array.tobytes())
