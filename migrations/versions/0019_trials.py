"""Trials are jobs that belong to another job, their tuning."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("jobs") as batch_op:
        batch_op.add_column(sa.Column("parent_id", sa.String(length=32), nullable=True))
    op.create_index("ix_jobs_parent_id", "jobs", ["parent_id"])


def downgrade() -> None:
    op.drop_index("ix_jobs_parent_id", "jobs")
    with op.batch_alter_table("jobs") as batch_op:
        batch_op.drop_column("parent_id")
