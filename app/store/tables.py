"""The tables: the one truth about datasets, hierarchies, jobs, models and keys; times are seconds since 1970, UTC."""

from typing import Any, ClassVar

from sqlalchemy import JSON, BigInteger, Double, ForeignKey, Index, Integer, String, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Table(DeclarativeBase):
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        dict[str, Any]: JSON,
        list[Any]: JSON,
        float: Double,
        int: BigInteger,
    }


class Key(Table):
    """An API key: only the SHA-256 of its secret is kept."""

    __tablename__ = "keys"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(128), unique=True)
    role: Mapped[str] = mapped_column(String(16))
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[float]
    revoked_at: Mapped[float | None]


class Dataset(Table):
    """An uploaded file and, once imported, its arrays."""

    __tablename__ = "datasets"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(128), unique=True)
    format: Mapped[str] = mapped_column(String(16))
    state: Mapped[str] = mapped_column(String(16))
    sha256: Mapped[str] = mapped_column(String(64))
    size_bytes: Mapped[int]
    path: Mapped[str | None] = mapped_column(String(255))
    kind: Mapped[str | None] = mapped_column(String(16))
    n_rows: Mapped[int | None]
    n_train: Mapped[int | None]
    n_classes: Mapped[int | None]
    n_features: Mapped[int | None]
    nnz: Mapped[int | None]
    statistics: Mapped[dict[str, Any] | None]
    error: Mapped[dict[str, Any] | None]
    created_at: Mapped[float]


class Hierarchy(Table):
    """A label tree; ``levels`` counts the nodes of each level."""

    __tablename__ = "hierarchies"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(128), unique=True)
    format: Mapped[str] = mapped_column(String(16))
    sha256: Mapped[str] = mapped_column(String(64))
    n_nodes: Mapped[int]
    n_leaves: Mapped[int]
    levels: Mapped[list[Any]]
    created_at: Mapped[float]


class HierarchyNode(Table):
    """One node of a label tree, numbered level by level, with the number of its parent, -1 for the top."""

    __tablename__ = "hierarchy_nodes"
    __table_args__ = (Index("ix_hierarchy_nodes_parent", "hierarchy_id", "parent"),)

    hierarchy_id: Mapped[str] = mapped_column(ForeignKey("hierarchies.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    parent: Mapped[int] = mapped_column(Integer)
    name: Mapped[str] = mapped_column(String(1000))


class Job(Table):
    """A piece of work: a lease says who does it, the attempt number fences off whoever lost it."""

    __tablename__ = "jobs"
    __table_args__ = (Index("ix_jobs_state_lease", "state", "lease_until"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    state: Mapped[str] = mapped_column(String(16))
    queue: Mapped[str] = mapped_column(String(64))
    dataset_id: Mapped[str | None] = mapped_column(ForeignKey("datasets.id", ondelete="SET NULL"), index=True)
    hierarchy_id: Mapped[str | None] = mapped_column(ForeignKey("hierarchies.id", ondelete="SET NULL"), index=True)
    request: Mapped[dict[str, Any]]
    attempt: Mapped[int] = mapped_column(Integer)
    losses: Mapped[int] = mapped_column(Integer)
    worker: Mapped[str | None] = mapped_column(String(128))
    lease_until: Mapped[float | None]
    # when a worker was last notified of it; None: a sweep shall do so
    notified_at: Mapped[float | None] = mapped_column("rung_at")
    progress: Mapped[dict[str, Any] | None]
    result: Mapped[dict[str, Any] | None]
    error: Mapped[dict[str, Any] | None]
    created_at: Mapped[float]
    started_at: Mapped[float | None]
    finished_at: Mapped[float | None]


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


class Checkpoint(Table):
    """The newest state from which a job can go on; one a job."""

    __tablename__ = "checkpoints"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    attempt: Mapped[int] = mapped_column(Integer)
    step: Mapped[int] = mapped_column(Integer)
    seconds: Mapped[float]
    path: Mapped[str] = mapped_column(String(255))
    sha256: Mapped[str] = mapped_column(String(64))


class Model(Table):
    """A name under which versions are kept."""

    __tablename__ = "models"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(128), unique=True)
    created_at: Mapped[float]


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


class Evaluation(Table):
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


class Idempotency(Table):
    """The answer already given to a POST that carried an Idempotency-Key."""

    __tablename__ = "idempotency"

    key_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    token: Mapped[str] = mapped_column(String(255), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    location: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[float]


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
