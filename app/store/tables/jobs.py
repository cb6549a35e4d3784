"""Jobs with their leases, curves and checkpoints; the workers that are alive, and the slots of shards."""

from typing import Any

from sqlalchemy import ForeignKey, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.store.tables.base import Owned, Table


class Job(Owned, Table):
    """A piece of work: a lease says who does it, the attempt number fences off a worker that lost it."""

    __tablename__ = "jobs"
    __table_args__ = (
        Index("ix_jobs_state_lease", "state", "lease_until"),
        Index("ix_jobs_workspace_id", "workspace", "id"),
        Index("ix_jobs_parent_id", "parent_id"),
        Index("ix_jobs_workspace_state_id", "workspace", "state", "id"),
        Index("ix_jobs_workspace_kind_id", "workspace", "kind", "id"),
        Index("ix_jobs_queue_state_finished", "queue", "state", "finished_at"),
        # what is taken next of each key
        Index("ix_jobs_next", "queue", "state", "priority", "workspace", "owner", "created_at", "id"),
        # when each workspace, and each key, was last served
        Index("ix_jobs_served", "queue", "workspace", "started_at"),
        Index("ix_jobs_key_served", "queue", "workspace", "owner", "started_at"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    # the tuning that a trial belongs to; jobs are never deleted
    parent_id: Mapped[str | None] = mapped_column(String(32))
    state: Mapped[str] = mapped_column(String(16))
    queue: Mapped[str] = mapped_column(String(64))
    dataset_id: Mapped[str | None] = mapped_column(ForeignKey("datasets.id", ondelete="SET NULL"), index=True)
    hierarchy_id: Mapped[str | None] = mapped_column(ForeignKey("hierarchies.id", ondelete="SET NULL"), index=True)
    request: Mapped[dict[str, Any]]
    # higher ones are taken first: -1, 0 or 1
    priority: Mapped[int] = mapped_column(Integer, default=0)
    # as they are shown; JobTag is what jobs are found by
    tags: Mapped[dict[str, Any] | None]
    # seconds from the first start
    time_limit: Mapped[float | None]
    # why it was queued again, the last time that it was
    queued_again: Mapped[str | None] = mapped_column(String(255))
    # the span of the request that made it, as W3C's traceparent
    trace: Mapped[str | None] = mapped_column(String(64))
    attempt: Mapped[int] = mapped_column(Integer)
    losses: Mapped[int] = mapped_column(Integer)
    worker: Mapped[str | None] = mapped_column(String(128))
    lease_until: Mapped[float | None]
    # when a worker was last notified of it; None: a sweep is to do so
    notified_at: Mapped[float | None] = mapped_column("rung_at")
    progress: Mapped[dict[str, Any] | None]
    result: Mapped[dict[str, Any] | None]
    error: Mapped[dict[str, Any] | None]
    created_at: Mapped[float]
    started_at: Mapped[float | None]
    finished_at: Mapped[float | None]


class JobTag(Table):
    """One tag of a job; ``workspace`` is the job's, so that those of others cost nothing."""

    __tablename__ = "job_tags"
    __table_args__ = (
        Index("ix_job_tags_name", "workspace", "name", "job_id"),
        Index("ix_job_tags_value", "workspace", "name", "value", "job_id"),
    )

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(String(128), primary_key=True)
    value: Mapped[str] = mapped_column(String(200))
    workspace: Mapped[str] = mapped_column(String(128))


class JobLogLine(Table):
    """One line of a job's log; ids sort by time."""

    __tablename__ = "job_log"
    __table_args__ = (Index("ix_job_log_job_id_id", "job_id", "id"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    at: Mapped[float]
    attempt: Mapped[int] = mapped_column(Integer)
    level: Mapped[str] = mapped_column(String(16))
    event: Mapped[str] = mapped_column(String(200))
    fields: Mapped[dict[str, Any]]


class Step(Table):
    """One point of a job's convergence curve."""

    __tablename__ = "steps"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    attempt: Mapped[int] = mapped_column(Integer)
    epoch: Mapped[int] = mapped_column(Integer)
    primal: Mapped[float | None]
    dual: Mapped[float | None]
    gap: Mapped[float | None]
    violation: Mapped[float | None]
    seconds: Mapped[float]
    point: Mapped[int] = mapped_column(Integer, default=0)
    measures: Mapped[dict[str, Any] | None]
    setting: Mapped[str | None] = mapped_column(Text)


class Checkpoint(Table):
    """The newest state from which a job can go on; one a job."""

    __tablename__ = "checkpoints"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    attempt: Mapped[int] = mapped_column(Integer)
    step: Mapped[int] = mapped_column(Integer)
    seconds: Mapped[float]
    path: Mapped[str] = mapped_column(String(255))
    sha256: Mapped[str] = mapped_column(String(64))


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
