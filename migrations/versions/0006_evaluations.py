"""Evaluations: measures of versions on datasets, with their tables of labels and confused pairs."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "evaluations",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("version_id", sa.String(length=32), nullable=False),
        sa.Column("dataset_id", sa.String(length=32), nullable=True),
        sa.Column("dataset_sha256", sa.String(length=64), nullable=False),
        sa.Column("hierarchy_sha256", sa.String(length=64), nullable=True),
        sa.Column("part", sa.String(length=16), nullable=False),
        sa.Column("n_rows", sa.BigInteger(), nullable=False),
        sa.Column("n_labels", sa.BigInteger(), nullable=False),
        sa.Column("unknown_rows", sa.BigInteger(), nullable=False),
        sa.Column("unknown_labels", sa.BigInteger(), nullable=False),
        sa.Column("unknown_named", sa.JSON(), nullable=False),
        sa.Column("resamples", sa.BigInteger(), nullable=False),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("propensities", sa.JSON(), nullable=True),
        sa.Column("path", sa.String(length=255), nullable=False),
        sa.Column("rows_sha256", sa.String(length=64), nullable=False),
        sa.Column("code_version", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["version_id"], ["model_versions.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_evaluations_version_id", "evaluations", ["version_id"])
    op.create_index("ix_evaluations_dataset_id", "evaluations", ["dataset_id"])
    op.create_table(
        "evaluation_measures",
        sa.Column("evaluation_id", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("level", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["evaluation_id"], ["evaluations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("evaluation_id", "number"),
    )
    op.create_table(
        "evaluation_labels",
        sa.Column("evaluation_id", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("level", sa.Integer(), nullable=False),
        sa.Column("known", sa.Boolean(), nullable=False),
        sa.Column("support", sa.BigInteger(), nullable=False),
        sa.Column("named", sa.BigInteger(), nullable=False),
        sa.Column("common", sa.BigInteger(), nullable=False),
        sa.Column("f1", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["evaluation_id"], ["evaluations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("evaluation_id", "number"),
    )
    op.create_table(
        "evaluation_confusions",
        sa.Column("evaluation_id", sa.String(length=32), nullable=False),
        sa.Column("level", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("true", sa.String(), nullable=False),
        sa.Column("predicted", sa.String(), nullable=False),
        sa.Column("n_rows", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["evaluation_id"], ["evaluations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("evaluation_id", "level", "place"),
    )


def downgrade() -> None:
    for table in ("evaluation_confusions", "evaluation_labels", "evaluation_measures", "evaluations"):
        op.drop_table(table)
