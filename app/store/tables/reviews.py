"""Review queues, their rows, and what people decided."""

from typing import Any

from sqlalchemy import JSON, Boolean, ForeignKey, Index, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.store.tables.base import Owned, Table


class Review(Owned, Table):
    """A queue of rows from a prediction job; ``promised`` is the precision that held-out rows promise for sure rows.

    A queue with a ``label_separator`` has sets of labels; a spreadsheet has it between the labels of a row.
    """

    __tablename__ = "reviews"
    __table_args__ = (UniqueConstraint("workspace", "name"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(128))
    job_id: Mapped[str] = mapped_column(String(32))
    model: Mapped[str] = mapped_column(String(128))
    version: Mapped[int] = mapped_column(Integer)
    dataset_id: Mapped[str | None] = mapped_column(ForeignKey("datasets.id", ondelete="SET NULL"), index=True)
    dataset_version: Mapped[int] = mapped_column(Integer)
    sure_share: Mapped[float]
    seed: Mapped[int]
    opinions: Mapped[int] = mapped_column(Integer)
    promised: Mapped[float | None]
    label_separator: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[float]


class ReviewRow(Table):
    """A row of a queue: ``row`` is its number in the dataset, ``place`` its position, the least sure first.

    A row is claimed while ``lease_until`` lies ahead, whatever its state is; a lease that has run out needs no sweep.
    ``job_id`` is the job that appends it to a dataset. If the dataset has several text columns, ``text`` has them
    joined, and ``record`` begins with them.
    """

    __tablename__ = "review_rows"
    __table_args__ = (Index("ix_review_rows_place", "review_id", "state", "place"),)

    review_id: Mapped[str] = mapped_column(ForeignKey("reviews.id", ondelete="CASCADE"), primary_key=True)
    row: Mapped[int] = mapped_column(primary_key=True)
    place: Mapped[int]
    row_id: Mapped[str | None] = mapped_column(Text)
    text: Mapped[str | None] = mapped_column(Text)
    record: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    alternatives: Mapped[list[Any]]
    sure: Mapped[bool] = mapped_column(Boolean)
    state: Mapped[str] = mapped_column(String(16))
    labels: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))
    revision: Mapped[int] = mapped_column(Integer)
    claimed_by: Mapped[str | None] = mapped_column(String(128))
    lease_until: Mapped[float | None]
    job_id: Mapped[str | None] = mapped_column(String(32))

    @property
    def beside_text(self) -> dict[str, Any] | None:
        """The columns of the record that are not joined in ``text``."""
        columns, joined, n_joined = list((self.record or {}).items()), "", 0
        for at, (_, value) in enumerate(columns, 1):
            if not isinstance(value, str):
                break
            joined = "\n".join(filter(None, (joined, value)))
            if joined == self.text:
                n_joined = at
        return dict(columns[n_joined:]) or None


class ReviewOpinion(Table):
    """What one person said of a row; without a list of labels, the person skipped it."""

    __tablename__ = "review_opinions"

    review_id: Mapped[str] = mapped_column(ForeignKey("reviews.id", ondelete="CASCADE"), primary_key=True)
    row: Mapped[int] = mapped_column(primary_key=True)
    person: Mapped[str] = mapped_column(String(128), primary_key=True)
    labels: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))
    comment: Mapped[str | None] = mapped_column(Text)
    arbiter: Mapped[bool] = mapped_column(Boolean)
    decided_at: Mapped[float]
