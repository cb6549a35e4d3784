"""Browsers and programs that have signed in: sessions and tokens, each on behalf of a key, and links that begin a
session, once.

Of all only digests are kept. A session or a token ends when its key is revoked, when it is signed out of, and after
``POLYMARGIN_SESSION_SECONDS``.
"""

import secrets
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.access import audit
from app.access.keys import Principal, digest, principal_of
from app.config import settings
from app.errors import Unauthenticated
from app.store import tables
from app.store.db import db_now, reading, writing
from app.store.lookup import moment

LINK_SECONDS = 900.0
_MOST_OF_KEY = 100

_S = tables.SignIn


def issue_token(session: Session, key_id: str, by: str) -> tuple[str, datetime]:
    """The secret of a program's token on behalf of a person, and when it expires; the audit log has it as ``by``."""
    secret = _make(session, "token", key_id, settings().session_seconds, {"by": by})
    with reading(session):
        expires_at = session.scalars(select(_S.expires_at).where(_S.digest == digest(secret))).one()
    return secret, moment(expires_at)


def begin(session: Session, key_id: str, by: str | None = None) -> str:
    """Start a session on behalf of a key and return its secret; a key's hundred-and-first session ends its oldest.

    The audit log says ``by`` what the person has signed in, where that was no key.
    """
    return _make(session, "session", key_id, settings().session_seconds, {} if by is None else {"by": by})


def offer_link(session: Session, key_id: str) -> str:
    """The secret of a link that begins a session of a key, once and within a quarter of an hour."""
    return _make(session, "link", key_id, LINK_SECONDS, {})


def redeem(session: Session, secret: str) -> Principal:
    """Use up a link and return whom it signs in; raises Unauthenticated for one that was used or is too old."""
    is_it = (_S.digest == digest(secret), _S.kind == "link", _S.expires_at > db_now())
    with reading(session):  # what is only guessed keeps no writer waiting
        key_id = session.scalars(select(_S.key_id).where(*is_it)).one_or_none()
        found = None if key_id is None else principal_of(session, key_id)
    if found is not None:
        with writing(session):
            used = session.scalars(delete(_S).where(*is_it).returning(_S.key_id)).one_or_none()
        if used is not None:
            return found
    raise Unauthenticated("This link was already used, or is older than 15 minutes.")


def principal(session: Session, digest: str) -> Principal:
    """Who has signed in to the session of that digest; raises Unauthenticated where it or its key has ended."""
    found = _whose(session, digest, "session")
    if found is None:
        raise Unauthenticated("The session has ended; sign in again.")
    return found


def of_token(session: Session, digest: str) -> Principal | None:
    """Who has signed in with the token of that digest; None where there is none, or it or its key has ended."""
    return _whose(session, digest, "token")


def end(session: Session, secret: str) -> None:
    """Sign out."""
    with writing(session):
        session.execute(delete(_S).where(_S.digest == digest(secret)))


def end_token(session: Session, secret: str) -> bool:
    """Sign a program out; return whether this is a token."""
    with writing(session):
        row = session.get(_S, digest(secret))
        if row is None or row.kind != "token":
            return False
        session.execute(delete(_S).where(_S.digest == row.digest))
        audit.changed(session, row, {}, None, "token")
        return True


def _whose(session: Session, digest: str, kind: str) -> Principal | None:
    with reading(session):
        query = select(_S.key_id).where(_S.digest == digest, _S.kind == kind, _S.expires_at > db_now())
        key_id = session.scalars(query).one_or_none()
        return None if key_id is None else principal_of(session, key_id)


def _make(session: Session, kind: str, key_id: str, seconds: float, reported: dict[str, str]) -> str:
    secret = secrets.token_urlsafe(32)
    with writing(session):
        session.execute(delete(_S).where(_S.expires_at <= db_now()))
        kept = select(_S.digest).where(_S.key_id == key_id, _S.kind == kind).order_by(_S.expires_at.desc())
        session.execute(delete(_S).where(_S.digest.in_(kept.offset(_MOST_OF_KEY - 1))))
        row = _S(digest=digest(secret), kind=kind, key_id=key_id, expires_at=db_now() + seconds)
        session.add(row)
        audit.changed(session, row, None, reported, kind)
    return secret
