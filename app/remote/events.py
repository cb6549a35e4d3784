"""Server-sent events of a job: parsed, and taken up again where a broken connection left off."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from app.remote.errors import UnavailableError, UnreachableError
from app.remote.transport import Transport

# The service sends a comment at least this often; a longer silence means a dead connection.
SILENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Event:
    """One event: its name (``step``, ``state``, ...), its JSON, and its place in the stream."""

    kind: str
    data: dict[str, Any]
    id: str | None = None


def parse(lines: Iterator[str]) -> Iterator[Event]:
    """The events in the lines of a ``text/event-stream``, as the HTML standard defines it (section 9.2.6)."""
    kind, place = "message", None
    data: list[str] = []
    for line in lines:
        if not line:
            if data:
                yield Event(kind, json.loads("\n".join(data)), place)
            kind, data = "message", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            kind = value
        elif field == "data":
            data.append(value)
        elif field == "id":
            place = value


def follow(
    transport: Transport, path: str, is_last: Callable[[Event], bool], after: str | None = None
) -> Iterator[Event]:
    """Events from after the id ``after`` until ``is_last``; a connection that ends before is taken up again.

    Raises
    ------
    UnreachableError
        The connection broke, and several attempts in a row to take it up again failed.
    """
    failures = 0
    cause: Exception | None = None
    while failures < transport.attempts:
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after is not None else {})
        try:
            with transport.stream(path, headers, SILENCE_SECONDS) as lines:
                for event in parse(lines):
                    failures, after = 0, event.id if event.id is not None else after
                    yield event
                    if is_last(event):
                        return
        except (httpx.TransportError, UnavailableError) as error:
            cause = error
        failures += 1
        transport.wait(failures)
    raise UnreachableError(f"The event stream of {path} was interrupted {failures} times in a row ({cause})") from None
