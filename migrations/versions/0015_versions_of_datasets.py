"""Versions of datasets: rows may be appended, and jobs name the version that they use."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("datasets") as batch_op:
        batch_op.add_column(sa.Column("version", sa.Integer(), nullable=False, server_default="1"))
    with op.batch_alter_table("datasets") as batch_op:
        batch_op.alter_column("version", server_default=None)
    op.create_table(
        "dataset_versions",
        sa.Column("dataset_id", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.String(length=32), nullable=True),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("path", sa.String(length=255), nullable=False),
        sa.Column("n_rows", sa.BigInteger(), nullable=False),
        sa.Column("n_train", sa.BigInteger(), nullable=False),
        sa.Column("statistics", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("dataset_id", "number"),
    )
    op.execute(
        "INSERT INTO dataset_versions (dataset_id, number, sha256, path, n_rows, n_train, statistics, created_at) "
        "SELECT id, 1, sha256, path, n_rows, n_train, statistics, created_at FROM datasets WHERE state = 'ready'"
    )


def downgrade() -> None:
    op.drop_table("dataset_versions")
    with op.batch_alter_table("datasets") as batch_op:
        batch_op.drop_column("version")
