"""What this process has asked object storage, and how that answered: for the metrics."""

import threading
import time
from typing import Any

from app.durations import Durations

# what is an answer of the storage, and no failure of it
_ANSWERED = 500
_TOO_MANY = 429
_BEGAN = "polymargin_began"


class StorageCounts:
    """Requests to object storage, each attempt by itself, and removals from the local copies.

    Attributes
    ----------
    requests : dict
        Numbers by operation, such as ``GetObject``, and outcome: ``answered`` or ``failed``.
    seconds : dict
        Durations by operation, from a request to the beginning of its answer.
    retries : int
        Attempts after the first one of a call.
    evictions : int
        Copies that made room for others.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.requests: dict[tuple[str, str], int] = {}
        self.seconds: dict[str, Durations] = {}
        self.retries = 0
        self.evictions = 0

    def watch(self, client: Any) -> None:
        """Count the requests of a client of boto3."""
        client.meta.events.register("request-created.s3", self._begin)
        client.meta.events.register("response-received.s3", self._end)

    def evicted(self) -> None:
        """Count a copy that was removed to make room."""
        with self.lock:
            self.evictions += 1

    def _begin(self, request: Any, operation_name: str, **_: object) -> None:
        # links that are only signed are created, too, and never sent
        request.context[_BEGAN] = operation_name, time.perf_counter()
        if request.context.get("retries", {}).get("attempt", 1) > 1:
            with self.lock:
                self.retries += 1

    def _end(self, context: Any, response_dict: Any, exception: Any, **_: object) -> None:
        if _BEGAN not in context:
            return
        operation, began = context.pop(_BEGAN)
        status = 0 if response_dict is None else response_dict["status_code"]
        failed = exception is not None or status >= _ANSWERED or status == _TOO_MANY
        with self.lock:
            key = operation, "failed" if failed else "answered"
            self.requests[key] = self.requests.get(key, 0) + 1
            self.seconds.setdefault(operation, Durations()).add(time.perf_counter() - began)


COUNTS = StorageCounts()
