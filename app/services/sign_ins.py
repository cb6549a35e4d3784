"""Browsers that have signed in: sessions that stand for a key, and links that begin one, once.

Of both only digests are kept. A session ends when its key is revoked, when it is signed out of, and after
``POLYMARGIN_SESSION_SECONDS``.
"""

import secrets

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.config import settings
from app.errors import Unauthenticated
from app.services.keys import Principal, digest, principal_of
from app.store import tables
from app.store.db import db_now, reading, writing

LINK_SECONDS = 900.0

_S = tables.SignIn


def begin(session: Session, key_id: str) -> str:
    """The secret of a new session that stands for a key."""
    return _make(session, "session", key_id, settings().session_seconds)


def offer_link(session: Session, key_id: str) -> str:
    """The secret of a link that begins a session of a key, once and within a quarter of an hour."""
    return _make(session, "link", key_id, LINK_SECONDS)


def redeem(session: Session, secret: str) -> str:
    """The secret of the session that a link begins; raises Unauthenticated for one that was used or is too old."""
    with writing(session):
        query = delete(_S).where(_S.digest == digest(secret), _S.kind == "link", _S.expires_at > db_now())
        key_id = session.scalars(query.returning(_S.key_id)).one_or_none()
    if key_id is None:
        raise Unauthenticated("This link was used already, or is older than a quarter of an hour.")
    return begin(session, key_id)


def principal(session: Session, digest: str) -> Principal:
    """Who has signed in to the session of that digest; raises Unauthenticated where it or its key has ended."""
    with reading(session):
        query = select(_S.key_id).where(_S.digest == digest, _S.kind == "session", _S.expires_at > db_now())
        key_id = session.scalars(query).one_or_none()
        found = None if key_id is None else principal_of(session, key_id)
        if found is None:
            raise Unauthenticated("The session has ended; sign in again.")
        return found


def end(session: Session, secret: str) -> None:
    """Sign out."""
    with writing(session):
        session.execute(delete(_S).where(_S.digest == digest(secret)))


def _make(session: Session, kind: str, key_id: str, seconds: float) -> str:
    secret = secrets.token_urlsafe(32)
    with writing(session):
        session.execute(delete(_S).where(_S.expires_at <= db_now()))
        session.add(_S(digest=digest(secret), kind=kind, key_id=key_id, expires_at=db_now() + seconds))
    return secret
