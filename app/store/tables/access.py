"""Keys, the browsers that have signed in by them, answers already given to an Idempotency-Key, and the audit log."""

from typing import Any

from sqlalchemy import JSON, Boolean, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.store.tables.base import InWorkspace, Table


class Key(InWorkspace, Table):
    """An API key, of which only the SHA-256 of its secret is kept; or a person.

    Nobody knows the secret of a person's key; the person is found by issuer and subject, as the identity provider has
    them.
    """

    __tablename__ = "keys"
    __table_args__ = (UniqueConstraint("workspace", "name"), UniqueConstraint("issuer", "subject"))

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(128))
    role: Mapped[str] = mapped_column(String(16))
    # it may move and remove protected aliases; an administrator's may anyway
    promotes: Mapped[bool] = mapped_column(Boolean, default=False)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[float]
    revoked_at: Mapped[float | None]
    expires_at: Mapped[float | None]
    last_used_at: Mapped[float | None]
    issuer: Mapped[str | None] = mapped_column(String(255))
    subject: Mapped[str | None] = mapped_column(String(255))


class Idempotency(Table):
    """The answer already given to a POST that carried an Idempotency-Key."""

    __tablename__ = "idempotency"

    key_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    token: Mapped[str] = mapped_column(String(255), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    location: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[float]


class AuditEntry(InWorkspace, Table):
    """One change that a request has made; rows are only ever added."""

    __tablename__ = "audit"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    at: Mapped[float] = mapped_column(index=True)
    key_id: Mapped[str] = mapped_column(String(32), index=True)
    key: Mapped[str] = mapped_column(String(128))
    method: Mapped[str] = mapped_column(String(16))
    route: Mapped[str] = mapped_column(String(255))
    path: Mapped[str] = mapped_column(String(255))
    request_id: Mapped[str | None] = mapped_column(String(64))
    address: Mapped[str | None] = mapped_column(String(255))
    what: Mapped[str | None] = mapped_column(String(32))
    thing_id: Mapped[str | None] = mapped_column(String(32), index=True)
    name: Mapped[str | None] = mapped_column(String(255), index=True)
    before: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    after: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class SignIn(Table):
    """A browser's session, a one-time link that begins one, or a program's token: only the SHA-256 of its secret."""

    __tablename__ = "sign_ins"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    kind: Mapped[str] = mapped_column(String(8))
    key_id: Mapped[str] = mapped_column(String(32))
    expires_at: Mapped[float]
