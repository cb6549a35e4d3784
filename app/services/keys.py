"""API keys: secrets are shown once and kept as digests."""

import hashlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.errors import Conflict, Unauthenticated
from app.schemas.keys import Key, NewKey, Role
from app.schemas.pages import Page
from app.services.lookup import by_id, check_name, moment, newest
from app.store import tables
from app.store.db import db_now, new_id, reading, writing

ADMIN = "admin"


@dataclass(frozen=True)
class Principal:
    """Who a request comes from."""

    key_id: str
    name: str
    role: Role


def create(session: Session, name: str, role: Role) -> NewKey:
    """Make a key; raises Conflict where the name is taken."""
    check_name(name)
    secret = f"pm_{secrets.token_urlsafe(32)}"
    try:
        with writing(session):
            row = _insert(session, name, role, secret)
    except IntegrityError:
        raise Conflict(f"a key is called {name!r} already") from None
    return NewKey(**_show(row).model_dump(), secret=secret)


def authenticate(session: Session, secret: str) -> Principal:
    """Whose secret this is; raises Unauthenticated for an unknown or revoked one."""
    with reading(session):
        # Looked up by digest: the time that takes tells nothing about the secret.
        query = select(tables.Key).where(tables.Key.digest == _digest(secret), tables.Key.revoked_at.is_(None))
        row = session.scalars(query).one_or_none()
        if row is None:
            raise Unauthenticated("the API key is not known, or was revoked")
        return Principal(row.id, row.name, _role(row))


def page(session: Session, page_size: int = 100, page_token: str | None = None) -> Page[Key]:
    """Keys, newest first."""
    with reading(session):
        rows, token = newest(session, tables.Key, select(tables.Key), page_size, page_token)
        return Page[Key](items=[_show(row) for row in rows], next_page_token=token)


def revoke(session: Session, id: str) -> Key:
    """End a key's validity at once; raises NotFound, and Conflict for the last administrator's."""
    with writing(session):
        row = by_id(session, tables.Key, id)
        if row.revoked_at is None:
            others = select(tables.Key.id).where(
                tables.Key.role == ADMIN, tables.Key.revoked_at.is_(None), tables.Key.id != row.id
            )
            if row.role == ADMIN and not session.scalars(others.with_for_update()).all():
                raise Conflict("this is the last administrator's key; make another before revoking it")
            session.execute(update(tables.Key).where(tables.Key.id == id).values(revoked_at=db_now()))
            session.refresh(row)
        return _show(row)


def ensure_admin(session: Session, file: Path) -> str | None:
    """Make the first administrator's key and write its secret to ``file`` (mode 600).

    Returns
    -------
    str or None
        The secret, or None where an administrator's key exists.
    """
    has_admin = select(tables.Key.id).where(tables.Key.role == ADMIN, tables.Key.revoked_at.is_(None)).limit(1)
    with reading(session):
        if session.scalars(has_admin).first():
            return None
    secret = f"pm_{secrets.token_urlsafe(32)}"
    try:
        with writing(session):
            if session.scalars(has_admin).first():
                return None
            _insert(session, f"admin-{new_id()}" if _taken(session, ADMIN) else ADMIN, ADMIN, secret)
            # Before the commit: a key that nobody can read would lock everybody out.
            _write_private(file, secret + "\n")
    except IntegrityError:  # another process made it at the same moment, and wrote its own file afterwards or will
        return None
    return secret


def _insert(session: Session, name: str, role: str, secret: str) -> tables.Key:
    row = tables.Key(id=new_id(), name=name, role=role, digest=_digest(secret), created_at=db_now())
    session.add(row)
    session.flush()
    session.refresh(row)
    return row


def _taken(session: Session, name: str) -> bool:
    return session.scalars(select(tables.Key.id).where(tables.Key.name == name)).first() is not None


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _role(row: tables.Key) -> Role:
    return row.role  # type: ignore[return-value]  # only create and ensure_admin write it


def _show(row: tables.Key) -> Key:
    return Key(
        id=row.id,
        name=row.name,
        role=_role(row),
        created_at=moment(row.created_at),
        revoked=row.revoked_at is not None,
    )


def _write_private(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{new_id()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.rename(temporary, file)
