"""Connections to PostgreSQL with a timeout for a silent server."""

import math
import time
from collections.abc import Generator
from typing import Any

import psycopg
from psycopg.waiting import Ready
from sqlalchemy import Engine, event

# within which a live server reports the end of a statement
_SLACK_SECONDS = 5.0


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that closes, with an OperationalError, once its server has been silent for too long.

    TCP knows nothing of it: the machine of a server that hangs, or a proxy before it, acknowledges all that is sent.
    """

    silence_seconds = math.inf

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        """Run one of the driver's operations."""
        return super().wait(self._heard(gen), *args, **kwargs)

    def _heard(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        heard_at, ready = time.monotonic(), None
        while True:
            try:
                wanted = gen.send(ready)
            except StopIteration as end:
                return end.value
            ready = yield wanted
            if ready != Ready.NONE:  # which the driver sends ten times a second while nothing comes
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at > self.silence_seconds:
                self.close()
                raise psycopg.OperationalError(f"the server was silent for {self.silence_seconds:g} seconds")


def bound(engine: Engine, statement_seconds: float) -> None:
    """Give up statements that take longer: the server does so, or, where it says nothing, the connection."""

    def connect(_dialect: Any, _record: Any, args: list[Any], given: dict[str, Any]) -> BoundedConnection:
        options = f"{given.get('options', '')} -c statement_timeout={math.ceil(1000 * statement_seconds)}"
        connection = BoundedConnection.connect(*args, **(given | {"options": options}))
        connection.silence_seconds = statement_seconds + _SLACK_SECONDS
        return connection

    event.listen(engine, "do_connect", connect)
