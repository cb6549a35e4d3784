"""Rules that start retrainings, and what came of each start."""

from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, Integer, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.store.tables.base import Owned, Table


class Rule(Owned, Table):
    """When a model is trained again, on what, and whether an alias follows.

    ``due_at`` is when its schedule names next, ``seen_feedback`` the newest report that has counted, ``run_id`` the one
    run that is not over. The one process that updates these from their previous values starts the run.
    """

    __tablename__ = "rules"
    __table_args__ = (UniqueConstraint("workspace", "name"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(128))
    model_id: Mapped[str] = mapped_column(ForeignKey("models.id", ondelete="CASCADE"), index=True)
    dataset_id: Mapped[str | None] = mapped_column(ForeignKey("datasets.id", ondelete="SET NULL"), index=True)
    training: Mapped[dict[str, Any]]
    warm: Mapped[bool]
    cron: Mapped[str | None] = mapped_column(String(100))
    time_zone: Mapped[str] = mapped_column(String(64))
    feedback: Mapped[bool]
    feedback_rows: Mapped[int | None] = mapped_column(Integer)
    promote: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    enabled: Mapped[bool]
    due_at: Mapped[float | None]
    seen_feedback: Mapped[str | None] = mapped_column(String(32))
    run_id: Mapped[str | None] = mapped_column(String(32))
    created_at: Mapped[float]


class RuleRun(Table):
    """One start of a rule: ``stage`` is the job that it waits for, ``outcome`` its result."""

    __tablename__ = "rule_runs"
    __table_args__ = (Index("ix_rule_runs_rule", "rule_id", "id"), Index("ix_rule_runs_stage", "stage"))

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    rule_id: Mapped[str] = mapped_column(ForeignKey("rules.id", ondelete="CASCADE"))
    cause: Mapped[str] = mapped_column(String(16))
    stage: Mapped[str] = mapped_column(String(16))
    append_job: Mapped[str | None] = mapped_column(String(32))
    train_job: Mapped[str | None] = mapped_column(String(32))
    # that of the new version, and that of the one that the alias names
    evaluations: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))
    dataset_version: Mapped[int | None] = mapped_column(Integer)
    version: Mapped[int | None] = mapped_column(Integer)
    # of the alias, when the version that it names was measured
    revision: Mapped[int | None] = mapped_column(Integer)
    outcome: Mapped[str | None] = mapped_column(String(16))
    decision: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    error: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    created_at: Mapped[float]
    finished_at: Mapped[float | None]
