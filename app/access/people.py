"""People whom an identity provider or a proxy has signed in: each has a key without a usable secret.

Roles, workspaces, sessions, revocation, the audit log and review queues treat a person as any other key.
"""

import re
import secrets
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.access.group_roles import highest_place
from app.access.keys import Principal, digest, principal_of
from app.config import Settings
from app.errors import Forbidden
from app.store import tables
from app.store.db import db_now, new_id, reading, writing

_LONGEST_NAME = 120  # a number behind it fits, too
LONGEST_SUBJECT = 255


@dataclass(frozen=True)
class Visitor:
    """A person, as an identity provider or a proxy describes them."""

    issuer: str
    subject: str
    name: str
    groups: frozenset[str]


def resolve(session: Session, visitor: Visitor, config: Settings) -> Principal:
    """Who a visitor is from now on; :func:`save` writes it. A new person gets an id and a free name.

    Raises
    ------
    Forbidden
        No group of the visitor has a role, or an administrator has revoked the person's access. Sessions end.
    """
    known = _row(session, visitor)
    place = highest_place(visitor.groups, config.group_places, config.default_place)
    if place is None or (known is not None and known.revoked_at is not None):
        if known is not None:
            with writing(session):
                session.execute(delete(tables.SignIn).where(tables.SignIn.key_id == known.id))
        why = "is in no group that may use this service" if place is None else "may no longer use this service"
        whom = config.access_contact or "the administrator of this service"
        raise Forbidden(f"The account {visitor.name[:100]} {why}. Ask {whom} for access.")
    if known is not None and known.workspace == place.workspace:
        promotes = known.promotes or place.role == "admin"
        return Principal(known.id, known.name, place.role, place.workspace, promotes)
    name = known.name if known is not None else _plain(visitor.name)
    id = known.id if known is not None else new_id()
    return Principal(id, _free(session, name, place.workspace), place.role, place.workspace, place.role == "admin")


def save(session: Session, visitor: Visitor, principal: Principal) -> Principal:
    """Write what :func:`resolve` has found, where it is new, and return the person as now known.

    Raises
    ------
    IntegrityError
        The same person signs in elsewhere at this moment, or the name was taken since.
    """
    with writing(session):
        row = session.get(tables.Key, principal.key_id)
        if row is None:
            row = tables.Key(
                id=principal.key_id,
                workspace=principal.workspace,
                name=principal.name,
                role=principal.role,
                promotes=False,
                digest=digest(secrets.token_urlsafe(32)),
                created_at=db_now(),
                issuer=visitor.issuer,
                subject=visitor.subject,
            )
            session.add(row)
        else:
            row.role, row.workspace, row.name = principal.role, principal.workspace, principal.name
        session.flush()
    found = principal_of(session, principal.key_id)
    if found is None:
        raise Forbidden("The access of this account has just been revoked.")
    return found


def groups_in(value: object) -> frozenset[str]:
    """The groups that a claim or a header lists: a list of texts, or one text with commas between them."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, Collection):
        return frozenset()
    return frozenset(group.strip() for group in value if isinstance(group, str) and group.strip())


def _row(session: Session, visitor: Visitor) -> tables.Key | None:
    known = (tables.Key.issuer == visitor.issuer, tables.Key.subject == visitor.subject)
    with reading(session):
        return session.scalars(select(tables.Key).where(*known)).one_or_none()


def _plain(name: str) -> str:
    """The name as names of keys are written: what has no letter in ASCII becomes a hyphen."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^A-Za-z0-9._]+", "-", ascii_name).strip("-._")
    return plain[:_LONGEST_NAME] or "person"


def _free(session: Session, name: str, workspace: str) -> str:
    """The name, with a number behind it where another key of the workspace has it."""
    with reading(session):
        key = tables.Key
        taken = select(key.name).where(key.workspace == workspace, key.name.startswith(name, autoescape=True))
        names = set(session.scalars(taken))
    number = 1
    while (free := name if number == 1 else f"{name}-{number}") in names:
        number += 1
    return free
