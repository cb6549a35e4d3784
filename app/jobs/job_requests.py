"""Requests of jobs, found by what they say, where one that the database cannot read hides none of the others.

PostgreSQL fails a whole query that looks into JSON which it cannot read, so requests are read as text, and parsed here.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Text, cast, or_, select
from sqlalchemy.orm import Session

from app.store import tables

J = tables.Job


class RequestedJob(NamedTuple):
    """A job with its request."""

    id: str
    kind: str
    state: str
    attempt: int
    request: dict[str, Any]


def requested(session: Session, *where: ColumnElement[bool]) -> Iterator[RequestedJob]:
    """Jobs by id, oldest first, without those whose request is unreadable."""
    query = select(J.id, J.kind, J.state, J.attempt, cast(J.request, Text)).where(*where).order_by(J.id)
    for id, kind, state, attempt, text in session.execute(query):
        try:
            request = json.loads(text)
        except ValueError:
            continue
        if isinstance(request, dict):
            yield RequestedJob(id, kind, state, attempt, request)


def of_model(session: Session, names: Sequence[str], *where: ColumnElement[bool]) -> Iterator[RequestedJob]:
    """As :func:`requested` those whose request names a model by one of ``names``, its name or id."""
    text = cast(J.request, Text)
    mentioned = or_(*(text.contains(f'"{name}"', autoescape=True) for name in names))
    return (job for job in requested(session, *where, mentioned) if job.request.get("model") in names)
