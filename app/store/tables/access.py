"""Keys, and the answers already given under an Idempotency-Key."""

from sqlalchemy import String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.store.tables.base import InWorkspace, Table


class Key(InWorkspace, Table):
    """An API key: only the SHA-256 of its secret is kept."""

    __tablename__ = "keys"
    __table_args__ = (UniqueConstraint("workspace", "name"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(128))
    role: Mapped[str] = mapped_column(String(16))
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[float]
    revoked_at: Mapped[float | None]
    expires_at: Mapped[float | None]
    last_used_at: Mapped[float | None]


class Idempotency(Table):
    """The answer already given to a POST that carried an Idempotency-Key."""

    __tablename__ = "idempotency"

    key_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    token: Mapped[str] = mapped_column(String(255), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    location: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[float]
