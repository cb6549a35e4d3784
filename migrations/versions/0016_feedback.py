"""Feedback: the right labels of instances, until they are rows of a dataset."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "feedback",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("workspace", sa.String(length=128), nullable=False),
        sa.Column("owner", sa.String(length=128), nullable=True),
        sa.Column("model_id", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("answer", sa.String(length=128), nullable=True),
        sa.Column("instance", sa.JSON(), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("note", sa.String(), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("job_id", sa.String(length=32), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_feedback_model", "feedback", ["model_id", "id"])
    op.create_index("ix_feedback_job_id", "feedback", ["job_id"])


def downgrade() -> None:
    op.drop_table("feedback")
