"""Models with their versions, measures and aliases, and how versions do on rows of a dataset."""

from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, Integer, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.store.tables.base import Owned, Table


class Model(Owned, Table):
    """A name under which versions are kept; ``last_number`` only grows, so no number comes twice."""

    __tablename__ = "models"
    __table_args__ = (UniqueConstraint("workspace", "name"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(128))
    created_at: Mapped[float]
    last_number: Mapped[int] = mapped_column(Integer, default=0)
    # how many of the newest versions are kept; None: all
    keep_last: Mapped[int | None] = mapped_column(Integer)
    about: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class ModelVersion(Table):
    """A trained model with all that its numbers can be traced to; ``point`` is its place in the job's path."""

    __tablename__ = "model_versions"
    __table_args__ = (UniqueConstraint("model_id", "number"), UniqueConstraint("job_id", "point"))

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    model_id: Mapped[str] = mapped_column(ForeignKey("models.id", ondelete="CASCADE"))
    number: Mapped[int] = mapped_column(Integer)
    job_id: Mapped[str] = mapped_column(String(32))
    point: Mapped[int] = mapped_column(Integer, default=0)
    dataset_id: Mapped[str | None] = mapped_column(ForeignKey("datasets.id", ondelete="SET NULL"), index=True)
    dataset_sha256: Mapped[str] = mapped_column(String(64))
    hierarchy_id: Mapped[str | None] = mapped_column(ForeignKey("hierarchies.id", ondelete="SET NULL"), index=True)
    hierarchy_sha256: Mapped[str | None] = mapped_column(String(64))
    solver: Mapped[str] = mapped_column(String(64))
    params: Mapped[dict[str, Any]]
    seed: Mapped[int]
    request: Mapped[dict[str, Any]]
    code_version: Mapped[str] = mapped_column(String(32))
    n_classes: Mapped[int]
    n_features: Mapped[int]
    n_train: Mapped[int]
    epochs: Mapped[int] = mapped_column(Integer)
    converged: Mapped[bool]
    primal: Mapped[float | None]
    dual: Mapped[float | None]
    gap: Mapped[float | None]
    violation: Mapped[float | None]
    seconds: Mapped[float]
    path: Mapped[str] = mapped_column(String(255))
    sha256: Mapped[str] = mapped_column(String(64))
    size_bytes: Mapped[int]
    report: Mapped[dict[str, Any] | None]
    created_at: Mapped[float]
    tags: Mapped[dict[str, Any] | None]
    notes: Mapped[str | None] = mapped_column(String)
    # of a version that was trained in another service
    origin: Mapped[dict[str, Any] | None]
    # of a smaller copy: of which version, how, and at what loss
    copy_of: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    edition_of: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    # of one that was to be trained once more on all rows: how it was measured, and what came of that
    refit: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    # of one whose dataset was deleted: the options of an upload by which its columns are read
    columns: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True), deferred=True)
    # of tags and notes
    revision: Mapped[int] = mapped_column(Integer, default=1)
    # it can be brought back until a sweep removes the row
    deleted_at: Mapped[float | None]


class Metric(Table):
    """One measure of one model version on one part of its data."""

    __tablename__ = "metrics"

    version_id: Mapped[str] = mapped_column(ForeignKey("model_versions.id", ondelete="CASCADE"), primary_key=True)
    part: Mapped[str] = mapped_column(String(16), primary_key=True)
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[float]


class Alias(Table):
    """A moving name for a version: production, candidate."""

    __tablename__ = "aliases"

    model_id: Mapped[str] = mapped_column(ForeignKey("models.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(String(128), primary_key=True)
    version_id: Mapped[str] = mapped_column(ForeignKey("model_versions.id", ondelete="CASCADE"))
    revision: Mapped[int] = mapped_column(Integer)


class AnswerCount(Table):
    """How often a version gave an answer with one label, or with a score in one bin, on one day (since 1970, UTC)."""

    __tablename__ = "answer_counts"

    version_id: Mapped[str] = mapped_column(ForeignKey("model_versions.id", ondelete="CASCADE"), primary_key=True)
    day: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    place: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    n: Mapped[int]


class Feedback(Owned, Table):
    """The right labels of one instance, as the key ``owner`` reported them; ``job_id`` is the append that took it."""

    __tablename__ = "feedback"
    __table_args__ = (Index("ix_feedback_model", "model_id", "id"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    model_id: Mapped[str] = mapped_column(ForeignKey("models.id", ondelete="CASCADE"))
    number: Mapped[int] = mapped_column(Integer)
    answer: Mapped[str | None] = mapped_column(String(128))
    instance: Mapped[dict[str, Any]]
    labels: Mapped[list[Any]]
    note: Mapped[str | None] = mapped_column(String)
    size_bytes: Mapped[int]
    job_id: Mapped[str | None] = mapped_column(String(32), index=True)
    created_at: Mapped[float]


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
