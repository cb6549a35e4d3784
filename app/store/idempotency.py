"""Idempotency keys: a repeated POST gets the response of the first one and creates nothing twice."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, delete, event, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.errors import Conflict, InvalidInput, NotFound
from app.store import tables
from app.store.db import db_now, reading

KEPT_SECONDS = 7 * 86400.0

_ROWS = tables.Idempotency

Table = (
    type[tables.Job]
    | type[tables.Dataset]
    | type[tables.Feedback]
    | type[tables.Hierarchy]
    | type[tables.ModelVersion]
    | type[tables.Review]
    | type[tables.Rule]
    | type[tables.RuleRun]
)


@dataclass(frozen=True)
class Token:
    """An Idempotency-Key as one API key sent it, kept for a week."""

    key_id: str
    token: str


def fingerprint(*parts: str) -> str:
    """A hash that is equal for two requests with the same content."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def known(session: Session, token: Token) -> bool:
    """Whether a POST with this token has already succeeded."""
    return _find(session, token) is not None


@contextmanager
def idempotent(session: Session, token: Token | None, fingerprint: str, table: Table) -> Iterator[str | None]:
    """Yield the id of what the same request made before, or None where the block has to make it.

    The token's row is written in the transaction in which the block writes the thing, so both are there or neither;
    of two requests at the same moment the second waits for the first one's row and then finds it.

    Parameters
    ----------
    session : Session
        The block writes with it and commits.
    token : Token or None
        None: the request may be repeated, and makes another thing.
    fingerprint : str
        Of the request.
    table : type
        Where the block adds its row; the row's id is what the token remembers.

    Raises
    ------
    InvalidInput
        The token was used for another request.
    Conflict
        The block does not find what the first request made.
    """
    if token is None:
        yield None
        return
    found = _find(session, token)
    if found is None:
        try:
            _claim(session, token, fingerprint)
        except IntegrityError:
            session.rollback()
            found = _find(session, token)
            if found is None:
                raise
    if found is None:
        with _remembering(session, token, table):
            yield None
        return
    if found[0] != fingerprint:
        raise InvalidInput("The Idempotency-Key was already used for another request.")
    try:
        yield found[1]
    except NotFound:
        raise Conflict(
            "The resource created by the first request with this Idempotency-Key has been deleted."
        ) from None


def _claim(session: Session, token: Token, fingerprint: str) -> None:
    session.execute(delete(_ROWS).where(_ROWS.created_at < db_now() - KEPT_SECONDS))
    values = {"fingerprint": fingerprint, "location": "", "created_at": db_now()}
    session.execute(insert(_ROWS).values(key_id=token.key_id, token=token.token, **values))


@contextmanager
def _remembering(session: Session, token: Token, table: Table) -> Iterator[None]:
    def remember(session: Session, _context: Any) -> None:
        for thing in session.new:
            if isinstance(thing, table):
                session.connection().execute(update(_ROWS).where(*_at(token)).values(location=thing.id))

    event.listen(session, "after_flush", remember)
    try:
        yield
    finally:
        event.remove(session, "after_flush", remember)


def _find(session: Session, token: Token) -> tuple[str, str] | None:
    with reading(session):
        row = session.execute(select(_ROWS.fingerprint, _ROWS.location).where(*_at(token))).first()
    return None if row is None else (row.fingerprint, row.location)


def _at(token: Token) -> tuple[ColumnElement[bool], ...]:
    return _ROWS.key_id == token.key_id, _ROWS.token == token.token
