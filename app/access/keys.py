"""API keys: secrets are shown once and kept as digests."""

import hashlib
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import ColumnElement, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.access import audit
from app.access.schemas import Key, NewKey, Role
from app.config import settings
from app.errors import Conflict, Forbidden, InvalidInput, Item, NotFound, Unauthenticated
from app.schemas import Page
from app.store import tables
from app.store.db import db_now, new_id, reading, writing
from app.store.lookup import check_name, newest, to_schema
from app.store.scope import DEFAULT, Scope, scope_of

ADMIN = "admin"
# issuer of people whom a proxy has signed in
PROXY = "proxy"


@dataclass(frozen=True)
class Principal:
    """Who a request comes from.

    A person whom a proxy has signed in has the name that the proxy gives the user; the person's sessions count for
    requests in which the proxy says so.
    """

    key_id: str
    name: str
    role: Role
    workspace: str = DEFAULT
    promotes: bool = False
    proxy_user: str | None = None

    @property
    def scope(self) -> Scope:
        """What its sessions see, and whose the things are that they make."""
        return Scope(
            self.workspace,
            self.name,
            administers=self.role == ADMIN,
            edits=self.role in ("editor", ADMIN),
            promotes=self.promotes,
        )


def create(
    session: Session,
    name: str,
    role: Role,
    expires_at: datetime | None = None,
    workspace: str | None = None,
    promotes: bool = False,
) -> NewKey:
    """Make a key, by default of the workspace of the one that asks; with its first key a workspace is there.

    Raises
    ------
    Forbidden
        A key of one workspace is asked for by one of another, which is not the installation's own.
    InvalidInput
        The name does not fit URLs, or the expiry of the key is in the past.
    Conflict
        The name is taken.
    """
    check_name(name)
    scope = scope_of(session) or Scope(DEFAULT)
    workspace = workspace or scope.workspace
    if scope.workspace not in (workspace, DEFAULT):
        raise Forbidden(f"Only administrators of the workspace {DEFAULT!r} can create keys for other workspaces.")
    secret = f"pm_{secrets.token_urlsafe(32)}"
    try:
        with writing(session):
            row = _insert(session, name, role, secret, expires_at, workspace, promotes)
            now = session.scalars(select(db_now())).one()
            if row.expires_at is not None and row.expires_at <= now:
                raise InvalidInput("the expiry of the key is in the past", [Item("not in the future", "/expires_at")])
            shown = _show(row, now)
    except IntegrityError:
        raise Conflict(f"the workspace {workspace!r} already has a key named {name!r}") from None
    return NewKey(**shown.model_dump(), secret=secret)


def digest(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def authenticate(session: Session, digest: str) -> Principal:
    """Whose secret has this :func:`digest`; raises Unauthenticated for one that is unknown, revoked or past."""
    with reading(session):
        # Looked up by digest: the time that this takes reveals nothing about the secret.
        query = select(tables.Key).where(tables.Key.digest == digest, *_valid())
        row = session.scalars(query).one_or_none()
        if row is None:
            raise Unauthenticated("the API key is not known, was revoked, or has expired")
        return _principal(row)


def principal_of(session: Session, key_id: str) -> Principal | None:
    """Who has the key of that id; None where it was revoked or is past."""
    with reading(session):
        row = session.scalars(select(tables.Key).where(tables.Key.id == key_id, *_valid())).one_or_none()
        return None if row is None else _principal(row)


def page(session: Session, page_size: int = 100, page_token: str | None = None) -> Page[Key]:
    """Keys, newest first."""
    with reading(session):
        rows, token = newest(session, tables.Key, select(tables.Key), page_size, page_token)
        now = session.scalars(select(db_now())).one()
        return Page[Key](items=[_show(row, now) for row in rows], next_page_token=token)


def note_uses(session: Session, seconds_ago: Mapping[str, float]) -> None:
    """Write when keys were last used, by their ids, unless a later use is written already."""
    with writing(session):
        for id, seconds in seconds_ago.items():
            used_at = db_now() - seconds
            earlier = or_(tables.Key.last_used_at.is_(None), tables.Key.last_used_at < used_at)
            session.execute(update(tables.Key).where(tables.Key.id == id, earlier).values(last_used_at=used_at))


def revoke(session: Session, ref: str) -> Key:
    """End a key's validity at once; raises NotFound, and Conflict for the last administrator's.

    Names are those of the asker's workspace; keys of others, which may be called the same, go by their ids.
    """
    with writing(session):
        own = (tables.Key.name == ref) & (tables.Key.workspace == (scope_of(session) or Scope(DEFAULT)).workspace)
        row = session.get(tables.Key, ref) or session.scalars(select(tables.Key).where(own)).first()
        if row is None:
            raise NotFound(f"your workspace has no key named {ref!r:.80}")
        if row.revoked_at is None:
            others = select(tables.Key.id).where(
                *_administers(), tables.Key.expires_at.is_(None), tables.Key.id != row.id
            )
            # One that ends by itself would leave the service without any.
            last = row.workspace == DEFAULT and row.role == ADMIN and row.expires_at is None and row.issuer is None
            if last and not session.scalars(others.with_for_update()).all():
                raise Conflict("this is the last administrator's key; create another before revoking it")
            session.execute(update(tables.Key).where(tables.Key.id == row.id).values(revoked_at=db_now()))
            session.refresh(row)
            audit.changed(session, row, {"revoked": False}, {"revoked": True})
        return _show(row, session.scalars(select(db_now())).one())


def ensure_admin(session: Session, file: Path) -> str | None:
    """Make the first administrator's key and write its secret to ``file`` (mode 600), unless the settings have it.

    Returns
    -------
    str or None
        The secret, or None where an administrator's key exists.
    """
    has_admin = select(tables.Key.id).where(*_administers()).limit(1)
    with reading(session):
        if session.scalars(has_admin).first():
            return None
    given = settings().admin_key
    secret = given or f"pm_{secrets.token_urlsafe(32)}"
    try:
        with writing(session):
            taken = _taken(session, ADMIN)  # first: what is committed in between would look old
            if session.scalars(has_admin).first():
                return None
            _insert(session, f"admin-{new_id()}" if taken else ADMIN, ADMIN, secret)
            # Before the commit: a key that nobody can read would lock everybody out.
            if not given:
                _write_private(file, secret + "\n")
    except IntegrityError:  # another process made it at the same moment, and wrote its own file afterwards or will
        return None
    return secret


def _valid() -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return (
        tables.Key.revoked_at.is_(None),
        or_(tables.Key.expires_at.is_(None), tables.Key.expires_at > db_now()),
    )


def _administers() -> tuple[ColumnElement[bool], ...]:
    # people depend on a provider, which may not answer one day: a key must be left
    return (tables.Key.workspace == DEFAULT, tables.Key.role == ADMIN, tables.Key.issuer.is_(None), *_valid())


def _insert(
    session: Session,
    name: str,
    role: str,
    secret: str,
    expires_at: datetime | None = None,
    workspace: str = DEFAULT,
    promotes: bool = False,
) -> tables.Key:
    row = tables.Key(
        id=new_id(),
        workspace=workspace,
        name=name,
        role=role,
        promotes=promotes,
        digest=digest(secret),
        created_at=db_now(),
        expires_at=None if expires_at is None else expires_at.timestamp(),
    )
    session.add(row)
    session.flush()
    session.refresh(row)
    return row


def _taken(session: Session, name: str) -> bool:
    query = select(tables.Key.id).where(tables.Key.name == name, tables.Key.workspace == DEFAULT)
    return session.scalars(query).first() is not None


def _role(row: tables.Key) -> Role:
    return row.role  # type: ignore[return-value]  # only create and ensure_admin write it


def _promotes(row: tables.Key) -> bool:
    return row.promotes or row.role == ADMIN


def _principal(row: tables.Key) -> Principal:
    proxy_user = row.subject if row.issuer == PROXY else None
    return Principal(row.id, row.name, _role(row), row.workspace, _promotes(row), proxy_user)


def _show(row: tables.Key, now: float) -> Key:
    return to_schema(
        Key,
        row,
        kind="key" if row.issuer is None else "person",
        role=_role(row),
        promotes=_promotes(row),
        revoked=row.revoked_at is not None,
        expired=row.expires_at is not None and row.expires_at <= now,
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
