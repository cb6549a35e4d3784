"""Webhooks, and the events that are or were to be sent to each."""

from typing import Any

from sqlalchemy import ForeignKey, Index, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.store.tables.base import Owned, Table


class Webhook(Owned, Table):
    """A URL that gets events; what happened before ``collected_at`` has its deliveries.

    ``secret`` signs each delivery, so it cannot be kept as a digest. Until ``former_until`` the secret before it signs,
    too.
    """

    __tablename__ = "webhooks"
    __table_args__ = (UniqueConstraint("workspace", "name"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(128))
    url: Mapped[str] = mapped_column(Text)
    events: Mapped[list[Any]]
    secret: Mapped[str] = mapped_column(String(128))
    former_secret: Mapped[str | None] = mapped_column(String(128))
    former_until: Mapped[float | None]
    created_at: Mapped[float]
    collected_at: Mapped[float]


class WebhookDelivery(Table):
    """One event for one webhook; ``key`` names what happened, so that nothing has two deliveries.

    An attempt moves ``due_at`` on before it sends: the one process that does so sends, and if it dies another follows.
    """

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        UniqueConstraint("webhook_id", "key"),
        Index("ix_webhook_deliveries_due", "state", "due_at"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    webhook_id: Mapped[str] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"))
    key: Mapped[str] = mapped_column(String(200))
    event: Mapped[str] = mapped_column(String(64))
    payload: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(String(16))
    attempts: Mapped[int] = mapped_column(Integer)
    due_at: Mapped[float]
    status: Mapped[int | None] = mapped_column(Integer)
    error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[float]
    delivered_at: Mapped[float | None]
