"""Workers that are alive, and the slots of pools of class shards."""

from sqlalchemy import ForeignKey, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from app.store.tables.base import Table


class Worker(Table):
    """A running worker's last report."""

    __tablename__ = "workers"

    id: Mapped[str] = mapped_column(String(128), primary_key=True)
    queue: Mapped[str] = mapped_column(String(64))
    processes: Mapped[int] = mapped_column(Integer)
    seen_at: Mapped[float]


class Slot(Table):
    """One process of a pool of class shards, and which shard of which job it is kept for or runs."""

    __tablename__ = "slots"

    queue: Mapped[str] = mapped_column(String(64), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    job_id: Mapped[str | None] = mapped_column(ForeignKey("jobs.id", ondelete="SET NULL"), index=True)
    attempt: Mapped[int | None] = mapped_column(Integer)
    rank: Mapped[int | None] = mapped_column(Integer)
    size: Mapped[int | None] = mapped_column(Integer)
    worker: Mapped[str | None] = mapped_column(String(128))
    lease_until: Mapped[float | None]
