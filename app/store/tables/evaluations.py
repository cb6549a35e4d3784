"""How versions do on rows of a dataset."""

from typing import Any

from sqlalchemy import ForeignKey, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from app.store.tables.base import Owned, Table


class Evaluation(Owned, Table):
    """How a version does on rows of a dataset; the id is its job's, and ``path`` has its measures by row."""

    __tablename__ = "evaluations"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    version_id: Mapped[str] = mapped_column(ForeignKey("model_versions.id", ondelete="CASCADE"), index=True)
    dataset_id: Mapped[str | None] = mapped_column(ForeignKey("datasets.id", ondelete="SET NULL"), index=True)
    dataset_sha256: Mapped[str] = mapped_column(String(64))
    hierarchy_sha256: Mapped[str | None] = mapped_column(String(64))
    part: Mapped[str] = mapped_column(String(16))
    n_rows: Mapped[int]
    n_labels: Mapped[int]
    unknown_rows: Mapped[int]
    unknown_labels: Mapped[int]
    unknown_named: Mapped[list[Any]]
    resamples: Mapped[int]
    confidence: Mapped[float]
    seed: Mapped[int]
    propensities: Mapped[dict[str, Any] | None]
    reliability: Mapped[list[Any] | None]
    path: Mapped[str] = mapped_column(String(255))
    rows_sha256: Mapped[str] = mapped_column(String(64))
    code_version: Mapped[str] = mapped_column(String(32))
    microseconds_per_row: Mapped[float | None]
    # by the measured model of a version whose served one was trained on these rows
    measured: Mapped[bool | None]
    created_at: Mapped[float]


class EvaluationMeasure(Table):
    """One measure of an evaluation; level 0 is all labels, the others those of the label tree."""

    __tablename__ = "evaluation_measures"

    evaluation_id: Mapped[str] = mapped_column(ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    level: Mapped[int] = mapped_column(Integer)
    name: Mapped[str] = mapped_column(String(64))
    value: Mapped[float]
    low: Mapped[float | None]
    high: Mapped[float | None]


class EvaluationLabel(Table):
    """How often a label is there, is named, and both, in an evaluation."""

    __tablename__ = "evaluation_labels"

    evaluation_id: Mapped[str] = mapped_column(ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    label: Mapped[str] = mapped_column(String)
    level: Mapped[int] = mapped_column(Integer)
    known: Mapped[bool]
    support: Mapped[int]
    named: Mapped[int]
    common: Mapped[int]
    f1: Mapped[float]


class EvaluationConfusion(Table):
    """A pair of labels that are confused, by falling number of rows within each level."""

    __tablename__ = "evaluation_confusions"

    evaluation_id: Mapped[str] = mapped_column(ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True)
    level: Mapped[int] = mapped_column(Integer, primary_key=True)
    place: Mapped[int] = mapped_column(Integer, primary_key=True)
    true: Mapped[str] = mapped_column(String)
    predicted: Mapped[str] = mapped_column(String)
    n_rows: Mapped[int]
