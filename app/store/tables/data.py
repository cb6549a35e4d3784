"""Datasets, and hierarchies of labels."""

from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, Integer, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.store.tables.base import Owned, Table


class Dataset(Owned, Table):
    """An uploaded file and, once imported, its arrays; after rows were appended, its newest version."""

    __tablename__ = "datasets"
    __table_args__ = (UniqueConstraint("workspace", "name"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(128))
    format: Mapped[str] = mapped_column(String(16))
    state: Mapped[str] = mapped_column(String(16))
    sha256: Mapped[str] = mapped_column(String(64))
    size_bytes: Mapped[int]
    version: Mapped[int] = mapped_column(Integer, default=1)
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


class DatasetVersion(Table):
    """A dataset as it was made by its import, or by an append; ``sha256`` follows from all files so far."""

    __tablename__ = "dataset_versions"

    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    job_id: Mapped[str | None] = mapped_column(String(32))
    sha256: Mapped[str] = mapped_column(String(64))
    path: Mapped[str] = mapped_column(String(255))
    n_rows: Mapped[int]
    n_train: Mapped[int]
    statistics: Mapped[dict[str, Any]]
    created_at: Mapped[float]


class Hierarchy(Owned, Table):
    """A label tree; ``levels`` counts the nodes of each level, ``report`` says what was read beside it."""

    __tablename__ = "hierarchies"
    __table_args__ = (UniqueConstraint("workspace", "name"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(128))
    format: Mapped[str] = mapped_column(String(16))
    sha256: Mapped[str] = mapped_column(String(64))
    n_nodes: Mapped[int]
    n_leaves: Mapped[int]
    levels: Mapped[list[Any]]
    report: Mapped[dict[str, Any] | None]
    created_at: Mapped[float]


class HierarchyNode(Table):
    """One node of a label tree, numbered level by level, with the number of its parent, -1 for the top.

    ``facts`` is what the vocabulary says of the label: its id, notation, names, state and other parents.
    """

    __tablename__ = "hierarchy_nodes"
    __table_args__ = (Index("ix_hierarchy_nodes_parent", "hierarchy_id", "parent"),)

    hierarchy_id: Mapped[str] = mapped_column(ForeignKey("hierarchies.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    parent: Mapped[int] = mapped_column(Integer)
    name: Mapped[str] = mapped_column(String(1000))
    facts: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class RetiredLabel(Table):
    """A deprecated label without a place in the tree; ``facts`` names what replaces it."""

    __tablename__ = "retired_labels"

    hierarchy_id: Mapped[str] = mapped_column(ForeignKey("hierarchies.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(String(1000), primary_key=True)
    facts: Mapped[dict[str, Any]]
