"""Answers to a POST that carried an Idempotency-Key."""

from collections.abc import Callable
from typing import TypeVar

from fastapi import Response
from sqlalchemy.orm import Session

from app.errors import Conflict, NotFound
from app.services.idempotency import Table, Token, once

R = TypeVar("R")


def make_once(
    session: Session,
    response: Response,
    token: Token | None,
    fingerprint: str,
    table: Table,
    make: Callable[[], R],
    get: Callable[[Session, str], R],
) -> R:
    """What ``make`` makes, or what the same request made before; see :func:`app.services.idempotency.once`."""
    if token is None:
        return make()
    made, id = once(session, token, fingerprint, table, make)
    if made is not None:
        return made
    response.headers["Idempotency-Replayed"] = "true"
    try:
        return get(session, id)
    except NotFound:
        raise Conflict("What the first request with this Idempotency-Key made was deleted since.") from None
