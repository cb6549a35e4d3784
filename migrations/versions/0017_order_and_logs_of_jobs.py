"""What says which job comes next, how long it may take and what it is called by; and the log of each job."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("jobs") as batch_op:
        batch_op.add_column(sa.Column("priority", sa.Integer(), nullable=False, server_default="0"))
        batch_op.add_column(sa.Column("tags", sa.JSON(), nullable=True))
        batch_op.add_column(sa.Column("time_limit", sa.Double(), nullable=True))
        batch_op.add_column(sa.Column("queued_again", sa.String(length=255), nullable=True))
    with op.batch_alter_table("jobs") as batch_op:
        batch_op.alter_column("priority", server_default=None)
    op.create_table(
        "job_log",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("level", sa.String(length=16), nullable=False),
        sa.Column("event", sa.String(length=200), nullable=False),
        sa.Column("fields", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_job_log_job_id_id", "job_log", ["job_id", "id"])


def downgrade() -> None:
    op.drop_table("job_log")
    with op.batch_alter_table("jobs") as batch_op:
        for name in ("queued_again", "time_limit", "tags", "priority"):
            batch_op.drop_column(name)
