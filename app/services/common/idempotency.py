"""Idempotency keys: a POST that is repeated gets the answer of the first one, and makes nothing twice."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, delete, event, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.errors import Conflict, InvalidInput, NotFound
from app.store import tables
from app.store.db import db_now, reading

KEPT_SECONDS = 7 * 86400.0

_ROWS = tables.Idempotency

R = TypeVar("R")
Table = (
    type[tables.Job]
    | type[tables.Dataset]
    | type[tables.Feedback]
    | type[tables.Hierarchy]
    | type[tables.ModelVersion]
    | type[tables.Rule]
    | type[tables.RuleRun]
)


@dataclass(frozen=True)
class Token:
    """An Idempotency-Key as one API key sent it, kept for a week."""

    key_id: str
    token: str


def fingerprint(*parts: str) -> str:
    """What two requests have in common when they ask for the same thing."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def known(session: Session, token: Token) -> bool:
    """Whether a POST with this token has succeeded before."""
    return _find(session, token) is not None


def once(
    session: Session,
    token: Token | None,
    fingerprint: str,
    table: Table,
    make: Callable[[], R],
    get: Callable[[Session, str], R],
) -> tuple[R, bool]:
    """Make a thing, or get the one that the same request made before.

    The token's row is written in the transaction in which ``make`` writes the thing, so both are there or neither;
    of two requests at the same moment the second waits for the first one's row and then finds it.

    Parameters
    ----------
    session : Session
    token : Token or None
        None: the request may be repeated, and makes another thing.
    fingerprint : str
        Of the request.
    table : type
        Where ``make`` adds its row; the row's id is what the token remembers.
    make : callable
        Writes with ``session`` and commits.
    get : callable
        Finds a thing by its id; raises NotFound.

    Returns
    -------
    thing : object
    replayed : bool
        Whether an earlier request made it.

    Raises
    ------
    InvalidInput
        The token was used for another request.
    Conflict
        What the first request made is there no more.
    """
    if token is None:
        return make(), False
    found = _find(session, token)
    if found is None:
        try:
            _claim(session, token, fingerprint)
        except IntegrityError:
            session.rollback()
            found = _find(session, token)
            if found is None:
                raise
        else:
            return _make(session, token, table, make), False
    return _made_before(session, found, fingerprint, get), True


def answered_before(
    session: Session, token: Token | None, fingerprint: str, get: Callable[[Session, str], R]
) -> R | None:
    """What the same request made before, if it did; for those with much to do before :func:`once`; raises as that."""
    found = None if token is None else _find(session, token)
    return None if found is None else _made_before(session, found, fingerprint, get)


def _made_before(session: Session, found: tuple[str, str], fingerprint: str, get: Callable[[Session, str], R]) -> R:
    if found[0] != fingerprint:
        raise InvalidInput("The Idempotency-Key was used for another request before.")
    try:
        return get(session, found[1])
    except NotFound:
        raise Conflict("What the first request with this Idempotency-Key made was deleted since.") from None


def _claim(session: Session, token: Token, fingerprint: str) -> None:
    session.execute(delete(_ROWS).where(_ROWS.created_at < db_now() - KEPT_SECONDS))
    values = {"fingerprint": fingerprint, "location": "", "created_at": db_now()}
    session.execute(insert(_ROWS).values(key_id=token.key_id, token=token.token, **values))


def _make(session: Session, token: Token, table: Table, make: Callable[[], R]) -> R:
    def remember(session: Session, _context: Any) -> None:
        for thing in session.new:
            if isinstance(thing, table):
                session.connection().execute(update(_ROWS).where(*_at(token)).values(location=thing.id))

    event.listen(session, "after_flush", remember)
    try:
        return make()
    finally:
        event.remove(session, "after_flush", remember)


def _find(session: Session, token: Token) -> tuple[str, str] | None:
    with reading(session):
        row = session.execute(select(_ROWS.fingerprint, _ROWS.location).where(*_at(token))).first()
    return None if row is None else (row.fingerprint, row.location)


def _at(token: Token) -> tuple[ColumnElement[bool], ...]:
    return _ROWS.key_id == token.key_id, _ROWS.token == token.token
